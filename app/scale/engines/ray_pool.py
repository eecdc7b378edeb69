"""Tasks on Ray, embedded on this machine or on a cluster. Frames never enter Ray's object store."""

import importlib.util
import logging
import os
import re
import secrets
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

from steadyseg.app.scale.engines.machine import usable_cores
from steadyseg.app.scale.engines.processes import WorkerLost
from steadyseg.core.errors import CheckFailed, InputError

PATIENCE_S = 12.0
"""Time limit for a cluster's answer, which takes 2 s."""
TRY = """
import sys, ray
try:
    ray.init(address=sys.argv[1], log_to_driver=False, configure_logging=False)
except Exception as error:
    sys.exit(" ".join(str(error).split()))
"""
LOCAL = re.compile(r"(localhost|127\.[0-9.]+|\[?::1\]?)(:|$)")
"""Addresses that stay on this machine."""
STORE_BYTES = 80 * 2**20
"""Size of Ray's smallest object store, since only tasks and rows go through the store."""


class RayPool:
    """The protocol of `LocalPool` on Ray, which places each task by its cores and GPUs."""

    def __init__(self, address: str | None = None, gpus: int = 0) -> None:
        """`gpus`: GPUs of each task. Raises InputError for an address without a cluster of this version, or without
        such GPUs."""
        self._ray = import_ray(address)
        self._needs = {"num_cpus": 1, "num_gpus": gpus}
        connect(self._ray, address)
        found = self._ray.cluster_resources()
        for kind, number in {"CPU": 1, "GPU": gpus}.items():
            if found.get(kind, 0) < number:
                self.close()
                raise InputError(
                    f"--ray: a worker needs {number} {kind}, and the cluster has {found.get(kind, 0):g} in all; "
                    "start nodes that have it, or choose another --device"
                )

    def most(self) -> int:
        """Number of tasks at a time."""
        return int(self._ray.cluster_resources()["CPU"])

    def submit(self, task: Callable[..., Any], *arguments: object) -> "Future[Any]":
        """Hands a task to Ray."""
        remote = self._ray.remote(max_retries=0, **self._needs)(task)
        return remote.remote(*arguments).future()

    def result(self, future: "Future[Any]") -> Any:
        """The result of a finished task. Raises WorkerLost if its process has ended, InputError if it cannot begin."""
        try:
            return future.result()
        except self._ray.exceptions.RayTaskError as error:
            last = re.sub(r"\x1b\[\d+m", "", str(error)).strip().splitlines()[-1].strip()
            raise InputError(
                f"--ray: a worker cannot begin ({last[:200]}); install this version of SteadySeg on every machine"
            ) from error
        except self._ray.exceptions.RayError as error:
            raise WorkerLost(" ".join(str(error).split())[:200]) from error

    def close(self) -> None:
        """Ends the tasks, on a cluster too, since they belong to this driver."""
        self._ray.shutdown()


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
        raise InputError("--ray needs Ray: pip install '.[scale]' in SteadySeg's clone")
    import ray
    import ray.exceptions

    return ray


def connect(ray: Any, address: str | None) -> None:
    """Connects to the cluster of the address, or starts one without a dashboard.

    The handler of SIGTERM is kept, since Ray would replace it. Raises InputError for an address without a fitting
    cluster, CheckFailed if Ray does not start: it gives its own processes 30 s.
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


def check_address(address: str) -> None:
    """Raises InputError, one line, if no cluster of this version answers in time.

    A process of its own makes the connection: Ray itself prints a line for each try, and waits 80 s for an address that
    does not answer.
    """
    command, tries = [sys.executable, "-P", "-c", TRY, address], {"RAY_NUM_REDIS_GET_RETRIES": "3"}
    try:
        tried = subprocess.run(command, env=tries | os.environ, capture_output=True, text=True, timeout=PATIENCE_S)
        said = (tried.stderr.strip().splitlines() or ["it ended without a word"])[-1][:300]
    except subprocess.TimeoutExpired:
        said = f"no answer within {PATIENCE_S:g} s"
    else:
        if tried.returncode == 0:
            return
        if "InvalidAuthToken" in tried.stderr:
            said = "it asks for a token; set RAY_AUTH_MODE=token, and RAY_AUTH_TOKEN if it is not ~/.ray/auth_token"
    raise InputError(f"--ray {address}: {said}; is `ray start --head` running there, of this version?")
