"""Workers as Ray actors: embedded on this machine, or on the cluster of an address. Frames never become Ray's objects."""

import importlib.util
import os
import subprocess
import sys
from typing import Any

from app.scale.capacity import KEPT_FREE, usable_cores
from app.scale.engine import Answer
from app.scale.shell import MakeWorker, Shell
from core.errors import InputError

PATIENCE_S = 20.0
"""For an address to answer."""
STORE_BYTES = 80 * 2**20
"""Ray's smallest object store: only calls and rows go through it."""


class RayEngine:
    """One actor a slot, which Ray places; what it needs is said in cores and, once measured, in memory."""

    def __init__(self, make: MakeWorker, threads: int, address: str | None = None) -> None:
        """InputError for an address where no cluster answers, or one of another version of Ray."""
        self._ray = import_ray(embedded=address is None)
        self._make, self._threads, self._memory_bytes = make, threads, 0
        self._actors: list[Any] = []
        self._calls: dict[Any, int] = {}
        connect(self._ray, address)

    def most(self, memory_bytes: int) -> int:
        """By what Ray says is free now, the first worker's core being taken."""
        self._memory_bytes = memory_bytes
        free = self._ray.available_resources()
        by_memory = int((1 - KEPT_FREE) * free.get("memory", 0) / max(memory_bytes, 1))
        return 1 + min(int(free.get("CPU", 0)) // self._threads, by_memory)

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
        """A cluster's actors end too: they belong to this driver."""
        self._ray.shutdown()

    def _receive(self, call: Any, slot: int) -> Answer:
        try:
            value, refusal = self._ray.get(call)
        except self._ray.exceptions.RayError as error:
            self._actors[slot] = self._start()
            return Answer(slot, lost=f"its worker was lost ({_first_line(error)})")
        return Answer(slot, value, refusal)

    def _start(self) -> Any:
        needs: dict[str, Any] = {"num_cpus": self._threads}
        if self._memory_bytes:
            needs["memory"] = self._memory_bytes
        return self._ray.remote(Shell).options(**needs).remote(self._make)


def import_ray(embedded: bool) -> Any:
    """ray, or InputError with the command that brings it; it reports nothing to its makers.

    Embedded it listens at the loopback address alone: Ray has one switch for that, which it names after the systems where it
    is so by default, and reads when it is imported (`_node_ip_address="127.0.0.1"` it takes for this machine's own address).
    """
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    if embedded:
        os.environ["RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"] = "0"
    if importlib.util.find_spec("ray") is None:
        raise InputError("--engine ray needs Ray: pip install 'steadyseg[scale]'")
    import ray
    import ray.exceptions

    return ray


def connect(ray: Any, address: str | None) -> None:
    """To the cluster of the address, or to one of our own without a dashboard."""
    quiet: dict[str, Any] = {"log_to_driver": False, "configure_logging": False}
    if address is None:
        ray.init(
            address="local", num_cpus=usable_cores(), object_store_memory=STORE_BYTES, include_dashboard=False,
            **quiet,
        )  # fmt: skip
        return
    check_address(address)
    try:
        ray.init(address=address, **quiet)
    except (RuntimeError, ConnectionError, ValueError) as error:
        raise InputError(f"--ray-address {address}: {_first_line(error)}") from error


def check_address(address: str) -> None:
    """InputError where no cluster answers in time; asked of a process of its own, as Ray itself would wait for minutes."""
    command = [sys.executable, "-m", "ray.scripts.scripts", "health-check", "--address", address]
    try:
        asked = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S)
    except subprocess.TimeoutExpired:
        reason = f"no answer within {PATIENCE_S:g} s"
    else:
        if asked.returncode == 0 or "AuthenticationError" in asked.stdout + asked.stderr:
            return  # a cluster that asks for a token answers too; Ray finds the user's own when it connects
        lines = (asked.stderr or asked.stdout).strip().splitlines() or ["no healthy cluster"]
        reason = lines[-1][:200]
    raise InputError(f"--ray-address {address}: {reason}; is `ray start --head` running there?")


def _first_line(error: BaseException) -> str:
    return " ".join(str(error).split())[:200]
