"""The cores and the memory of this machine: how many workers fit, and the one core of each. No torch at the top: a
worker chooses its core before torch is imported.

A worker has one thread. One video on two threads is slower than two videos on one thread each, since decoding and
drawing do not divide.
"""

import contextlib
import os
import sys
from pathlib import Path
from typing import BinaryIO

from steadyseg.app.opencv import opencv
from steadyseg.core.system.files import lock, private_folder
from steadyseg.core.system.machine import CGROUPS, available_cpus, cpu_quota

WORKER_BYTES = 3 * 2**29
"""Memory of a worker: the largest that was measured has 1.3 GB."""
_taken: list[BinaryIO] = []
"""The lock of this process's core; it ends with the process."""


def usable_cores() -> int:
    """Whole cores that this process may use: a container's quota is rounded down, as each worker has its own cores."""
    return max(1, int(min(available_cpus(), cpu_quota())))


def workers_that_fit() -> int:
    """Number of workers that the cores and the memory of this machine hold, or of its container by cgroup v2."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    with contextlib.suppress(OSError, ValueError):  # no container, or "max"
        memory = min(memory, int((CGROUPS / "memory.max").read_text()))
    return max(1, min(usable_cores(), memory // WORKER_BYTES))


def pin_core() -> None:
    """Pins this process to a core that no other worker here has, and limits every library to one thread.

    Call it before torch, OpenCV or numba are imported. If other workers have all cores, this worker shares one.
    """
    for name in ("OMP", "MKL", "OPENBLAS", "NUMBA"):
        os.environ[f"{name}_NUM_THREADS"] = "1"
    os.environ["OPENCV_FOR_THREADS_NUM"] = "1"
    if not hasattr(os, "sched_setaffinity"):
        return
    folder, cores = private_folder(), sorted(os.sched_getaffinity(0))
    shared = cores[os.getpid() % len(cores)]
    os.sched_setaffinity(0, {next((core for core in cores if _take(folder / f"core-{core}")), shared)})


def _take(path: Path) -> bool:
    file = path.open("ab")
    if not lock(file):
        file.close()
        return False
    _taken.append(file)
    return True


def use_one_thread() -> None:
    """Limits OpenCV to one thread, and torch too where torch is loaded. With the environment variables alone, a
    clip takes 0.88 s on the local engine, not 0.60 s."""
    opencv().setNumThreads(1)
    if torch := sys.modules.get("torch"):
        torch.set_num_threads(1)
