"""Workers as processes of this machine, one pipe each, and the choice between them and Ray. No worker outlives the
driver, however the driver ends."""

import contextlib
import multiprocessing
import os
import signal
import threading
from collections.abc import Iterator
from multiprocessing.connection import Connection, wait
from multiprocessing.context import SpawnProcess
from typing import Any, NamedTuple

from steadyseg.app.scale.engines.engine import Answer, Engine, MakeWorker, WorkerProxy
from steadyseg.app.scale.engines.machine import free_memory_bytes, workers_that_fit
from steadyseg.core.system.files import private_folder


class _Worker(NamedTuple):
    process: SpawnProcess
    pipe: "Connection[Any, Any]"


class LocalEngine:
    """An engine of spawned processes: forked ones would inherit locks of torch's threads that nobody releases."""

    def __init__(self, make: MakeWorker) -> None:
        private_folder()  # an error here is one line, not a line of every worker
        self._make = make
        self._workers: list[_Worker] = []

    def most(self, memory_bytes: int) -> int:
        return workers_that_fit(memory_bytes, free_memory_bytes())

    def grow(self, slots: int) -> None:
        while len(self._workers) < slots:
            self._workers.append(self._start())

    def call(self, slot: int, method: str, *arguments: Any) -> None:
        with contextlib.suppress(OSError):  # the worker has died: `wait` reports it
            self._workers[slot].pipe.send((method, arguments))

    def wait(self, timeout_s: float) -> list[Answer]:
        """Answers that came meanwhile, with the last answers of workers that died since."""
        ready = wait([worker.pipe for worker in self._workers], timeout_s)
        return [self._receive(slot) for slot, worker in enumerate(self._workers) if worker.pipe in ready]

    def replace(self, slot: int) -> None:
        worker = self._workers[slot]
        worker.process.kill()
        worker.process.join()
        worker.pipe.close()
        self._workers[slot] = self._start()

    def close(self) -> None:
        for worker in self._workers:
            worker.process.kill()
        for worker in self._workers:
            worker.process.join()
            worker.pipe.close()
        self._workers.clear()

    def _receive(self, slot: int) -> Answer:
        process, pipe = self._workers[slot]
        try:
            value, refusal = pipe.recv()
        except (EOFError, OSError):
            process.join()
            pipe.close()
            self._workers[slot] = self._start()
            code = process.exitcode or 0
            how = f"by {signal.Signals(-code).name}" if code < 0 else f"with exit code {code}"
            return Answer(slot, lost=f"ended {how}")
        return Answer(slot, value, refusal)

    def _start(self) -> _Worker:
        context = multiprocessing.get_context("spawn")
        ours, its = context.Pipe()
        process = context.Process(target=_serve, args=(its, self._make), daemon=True)
        process.start()
        its.close()
        return _Worker(process, ours)


def _serve(pipe: "Connection[Any, Any]", make: MakeWorker) -> None:
    """The main function of a worker's process. Ctrl-C is left to the driver; an error that no worker expects ends it
    with a traceback."""
    for name in ("SIGINT", "SIGHUP"):
        if hasattr(signal, name):
            signal.signal(getattr(signal, name), signal.SIG_IGN)
    threading.Thread(target=_end_with_driver, daemon=True).start()
    with contextlib.suppress(ImportError):
        import tqdm  # type: ignore[import-untyped]

        # Torch's tracer asks it for a progress bar; its own lock is a semaphore that a killed worker leaves behind.
        tqdm.tqdm.set_lock(threading.RLock())
    proxy = WorkerProxy(make)
    while True:
        try:
            method, arguments = pipe.recv()
        except EOFError:
            return
        pipe.send(proxy.call(method, arguments))


def _end_with_driver() -> None:
    driver = multiprocessing.parent_process()
    if driver is not None:
        driver.join()
        os._exit(1)  # incomplete results have no name yet


@contextlib.contextmanager
def open_engine(ray: str | None, make: MakeWorker, device: str) -> Iterator[Engine]:
    """A context with the engine; at its end no worker is left.

    Args:
        ray: `local` or the address of a cluster; if None, the workers are processes of this machine.
        device: The device of the segmenters; on Ray with a GPU device, each worker has its own GPU.
    """
    engine: Engine
    if ray is not None:
        from steadyseg.app.scale.engines.ray_engine import RayEngine

        address = None if ray == "local" else ray
        engine = RayEngine(make, address, gpus=int(device not in ("auto", "cpu")))
    else:
        engine = LocalEngine(make)
    with contextlib.closing(engine):
        yield engine
