"""Processes of this machine, each for one task at a time. None outlives the process that started it."""

import contextlib
import multiprocessing
import os
import signal
import threading
from collections.abc import Callable
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from multiprocessing.process import BaseProcess
from typing import Any

from steadyseg.app.scale.engines.machine import workers_that_fit
from steadyseg.core.system.files import private_folder


class WorkerLost(RuntimeError):
    """The process of a task has ended before the task; the message says how."""


class OneProcess:
    """A spawned process; a forked process would inherit locks of torch's threads that nobody releases."""

    def __init__(self) -> None:
        self._pool = ProcessPoolExecutor(1, multiprocessing.get_context("spawn"), initializer=_begin)
        self._processes: list[BaseProcess] = []

    def submit(self, task: Callable[..., Any], *arguments: object) -> "Future[Any]":
        """Starts task(*arguments). Raises WorkerLost if the process has ended since its last task."""
        try:
            future = self._pool.submit(task, *arguments)
        except BrokenProcessPool:
            raise WorkerLost(self.kill()) from None
        self._processes = list(self._pool._processes.values())
        return future

    def result(self, future: "Future[Any]", limit_s: float | None = None) -> Any:
        """The result of a task, or its error. Raises WorkerLost if the process ends, TimeoutError after `limit_s`."""
        try:
            return future.result(limit_s)
        except BrokenProcessPool:
            raise WorkerLost(self.kill()) from None

    def kill(self) -> str:
        """Ends the process, whatever it does, and says how it ended."""
        for process in self._processes:
            process.kill()
        self._pool.shutdown(cancel_futures=True)
        codes = [process.exitcode or 0 for process in self._processes]
        return ", ".join(f"by {signal.Signals(-code).name}" if code < 0 else f"with exit code {code}" for code in codes)


def _begin() -> None:
    for name in ("SIGINT", "SIGHUP"):  # Ctrl-C is the parent's
        if hasattr(signal, name):
            signal.signal(getattr(signal, name), signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    with contextlib.suppress(ImportError):
        import tqdm  # type: ignore[import-untyped]

        # Torch's tracer asks it for a progress bar; its own lock is a semaphore that a killed process leaves behind.
        tqdm.tqdm.set_lock(threading.RLock())


def _end_with_parent() -> None:
    if parent := multiprocessing.parent_process():
        parent.join()
        os._exit(1)  # incomplete results have no name yet


class LocalPool:
    """One process of this machine for each task at a time; a process that has ended is replaced."""

    def __init__(self) -> None:
        private_folder()  # an error here is one line, not a line of every worker
        self._idle: list[OneProcess] = []
        self._busy: dict[Future[Any], OneProcess] = {}

    def most(self) -> int:
        """Number of tasks at a time."""
        return workers_that_fit()

    def submit(self, task: Callable[..., Any], *arguments: object) -> "Future[Any]":
        """Starts a task in an idle process, or in a new one."""
        process = self._idle.pop() if self._idle else OneProcess()
        try:
            future = process.submit(task, *arguments)
        except WorkerLost:
            return self.submit(task, *arguments)
        self._busy[future] = process
        return future

    def result(self, future: "Future[Any]") -> Any:
        """The result of a finished task, which must be taken once. Raises WorkerLost if its process has ended."""
        process = self._busy.pop(future)
        result = process.result(future)
        self._idle.append(process)
        return result

    def close(self) -> None:
        """Ends all processes."""
        for process in (*self._idle, *self._busy.values()):
            process.kill()
