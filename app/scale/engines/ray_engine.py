"""Workers as Ray actors, embedded on this machine or on a cluster. Frames never enter Ray's object store."""

import importlib.util
import logging
import os
import re
import secrets
import signal
import subprocess
import sys
import threading
from typing import Any

from steadyseg.app.scale.engines.engine import Answer, MakeWorker, WorkerProxy
from steadyseg.app.scale.engines.machine import KEPT_FREE, usable_cores
from steadyseg.core.errors import CheckFailed, InputError

PATIENCE_S = 12.0
"""Time limit for a cluster's answer. The answer takes 2 s; with a command's imports it takes 4 s of processor time and
less than 20 s."""
TRY = """
import sys, ray
try:
    ray.init(address=sys.argv[1], log_to_driver=False, configure_logging=False)
except Exception as error:
    sys.exit(" ".join(str(error).split()))
"""
ATTEMPTS = "RAY_NUM_REDIS_GET_RETRIES"
"""Attempts at a refused connection, one a second; Ray makes 20."""
LOCAL = re.compile(r"(localhost|127\.[0-9.]+|\[?::1\]?)(:|$)")
"""Addresses that stay on this machine."""
STORE_BYTES = 80 * 2**20
"""Size of Ray's smallest object store, since only calls and rows go through the store."""


class RayEngine:
    """An engine with one Ray actor per slot, placed by the cores, GPUs and (once measured) memory that it needs."""

    def __init__(self, make: MakeWorker, address: str | None = None, gpus: int = 0) -> None:
        """`gpus`: GPUs of each worker. Raises InputError for an address without a cluster of this version, or
        without such GPUs."""
        self._ray = import_ray(address)
        self._make, self._memory_bytes = make, 0
        self._needs = {"CPU": 1, "GPU": gpus}
        self._actors: list[Any] = []
        self._calls: dict[Any, int] = {}
        connect(self._ray, address)
        found = self._ray.cluster_resources()
        for kind, number in self._needs.items():
            if found.get(kind, 0) < number:
                self.close()
                raise InputError(
                    f"--ray: a worker needs {number} {kind}, and the cluster has {found.get(kind, 0):g} in all; "
                    "start nodes that have it, or choose another --device"
                )

    def most(self, memory_bytes: int) -> int:
        """Largest number of workers: the first worker, and as many more as Ray's free resources allow."""
        self._memory_bytes = memory_bytes
        free = self._ray.available_resources()
        fits = [int((1 - KEPT_FREE) * free.get("memory", 0) / max(memory_bytes, 1))]
        fits += [int(free.get(kind, 0)) // number for kind, number in self._needs.items() if number]
        return 1 + min(fits)

    def grow(self, slots: int) -> None:
        while len(self._actors) < slots:
            self._actors.append(self._start())

    def call(self, slot: int, method: str, *arguments: Any) -> None:
        self._calls[self._actors[slot].call.remote(method, arguments)] = slot

    def wait(self, timeout_s: float) -> list[Answer]:
        if not self._calls:
            return []
        done, _ = self._ray.wait(list(self._calls), num_returns=1, timeout=timeout_s)
        return [self._receive(call, self._calls.pop(call)) for call in done]

    def replace(self, slot: int) -> None:
        self._calls = {call: one for call, one in self._calls.items() if one != slot}
        self._ray.kill(self._actors[slot])
        self._actors[slot] = self._start()

    def close(self) -> None:
        """Ends the actors, on a cluster too, since they belong to this driver."""
        self._ray.shutdown()

    def _receive(self, call: Any, slot: int) -> Answer:
        try:
            value, refusal = self._ray.get(call)
        except self._ray.exceptions.RayError as error:
            self._actors[slot] = self._start()
            return _end_of(slot, error)
        return Answer(slot, value, refusal)

    def _start(self) -> Any:
        needs: dict[str, Any] = {"num_cpus": self._needs["CPU"], "num_gpus": self._needs["GPU"]}
        if self._memory_bytes:
            needs["memory"] = self._memory_bytes
        return self._ray.remote(WorkerProxy).options(**needs).remote(self._make)


def import_ray(address: str | None) -> Any:
    """The package ray, with usage reports switched off. Raises InputError with the command that installs it.

    An embedded cluster listens at the loopback address alone. The only switch for that is
    `RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER`, which Ray reads on import; `_node_ip_address="127.0.0.1"` has no such effect.
    """
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    os.environ.setdefault("RAY_worker_niceness", "0")  # by its default, 15, workers beside a program get 3 % of a core
    if address is None or LOCAL.match(address):
        os.environ["RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"] = "0"
    if address is None and "RAY_AUTH_MODE" not in os.environ:  # else Ray writes a token into the home folder, for ever
        os.environ |= {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": secrets.token_hex(32)}
    logging.getLogger("ray").setLevel(logging.ERROR)
    if importlib.util.find_spec("ray") is None:
        raise InputError("--ray needs Ray: pip install 'steadyseg[scale]'")
    import ray
    import ray.exceptions

    return ray


def connect(ray: Any, address: str | None) -> None:
    """Connects to the cluster of the address, or starts one without a dashboard.

    The handler of SIGTERM is kept, since Ray would replace it. Raises CheckFailed if Ray does not start: it gives its
    own processes 30 s, which were needed under a load of eight times the cores.
    """
    if address is not None:
        check_address(address)
    own = {"num_cpus": usable_cores(), "object_store_memory": STORE_BYTES, "include_dashboard": False}
    handler = signal.getsignal(signal.SIGTERM)
    try:
        ray.init(address or "local", **({} if address else own), log_to_driver=False, configure_logging=False)
    except Exception as error:  # Ray raises plain Exceptions
        raise CheckFailed(f"Ray does not start: {' '.join(str(error).split())[:300]}") from error
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGTERM, handler)


def _end_of(slot: int, error: BaseException) -> Answer:
    """The answer of an actor that is gone: lost, or refused if the actor could not be made."""
    lines = re.sub(r"\x1b\[\d+m", "", str(error)).strip().splitlines()
    if "error raised in its creation task" in lines[0]:
        reason = f"a worker cannot be made ({lines[-1].strip()[:200]})"
        return Answer(slot, refusal=f"--ray: {reason}; install this version of SteadySeg on every machine")
    return Answer(slot, lost=f"lost: {' '.join(lines)[:200]}")


def check_address(address: str) -> None:
    """Raises InputError, one line, if no cluster answers in time, or if it asks for a token or runs another version
    of Ray or Python.

    A separate process makes the connection: Ray itself waits 80 s for an address that does not answer, and no flag
    shortens this wait.
    """
    try:
        tried = subprocess.run(
            [sys.executable, "-P", "-c", TRY, address],
            env={ATTEMPTS: "3"} | os.environ,
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
        )
    except subprocess.TimeoutExpired as error:
        raise _refusal(address, f"no answer within {PATIENCE_S:g} s") from error
    if tried.returncode == 0:
        return
    if "InvalidAuthToken" in tried.stderr:
        raise InputError(
            f"--ray {address}: this cluster asks for a token; set RAY_AUTH_MODE=token, and RAY_AUTH_TOKEN "
            "if it differs from ~/.ray/auth_token"
        )
    said = (tried.stderr.strip().splitlines() or ["it ended without a word"])[-1]
    raise _refusal(address, said[:300])


def _refusal(address: str, reason: str) -> InputError:
    return InputError(f"--ray {address}: {reason}; is `ray start --head` running there, of this version?")
