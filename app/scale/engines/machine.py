"""The cores and the memory of this machine: how many workers fit, and the one core of each. No torch at the top: a
worker chooses its core before torch is imported.

A worker has one thread. One video on two threads is slower than two videos on one thread each, since decoding and
drawing do not divide.
"""

import os
import sys
from pathlib import Path
from typing import BinaryIO

from steadyseg.app.opencv import opencv
from steadyseg.core.system.files import lock, private_folder
from steadyseg.core.system.machine import CGROUPS, available_cpus, cpu_quota

KEPT_FREE = 0.1
"""Share of the machine's free memory that is left free: frames of later videos may be larger than the first video's."""
_taken: list[BinaryIO] = []
"""The lock of this process's core; it ends with the process."""


def usable_cores() -> int:
    """Whole cores that this process may use: a container's quota is rounded down, as each worker has its own cores."""
    return max(1, int(min(available_cpus(), cpu_quota())))


def workers_that_fit(memory_bytes: int, free_bytes: int) -> int:
    """Number of workers of `memory_bytes` each that fit; one worker was running when `free_bytes` were measured."""
    by_memory = 1 + int((1 - KEPT_FREE) * free_bytes / max(memory_bytes, 1))
    return max(1, min(usable_cores(), by_memory))


def free_memory_bytes() -> int:
    """Memory in bytes that new processes can have without swapping; in a container with a limit, the rest of the
    limit."""
    free = [value for value in (_bytes_of("/proc/meminfo", "MemAvailable"), _left_of_container()) if value is not None]
    return min(free, default=os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))


def _bytes_of(path: str, name: str) -> int | None:
    """The bytes in the line `NAME: N kB` of a file of /proc; None if the system has none."""
    try:
        lines = Path(path).read_text().splitlines()
    except OSError:
        return None
    return next((1024 * int(line.split()[1]) for line in lines if line.startswith(f"{name}:")), None)


def _left_of_container() -> int | None:
    """Rest of the memory limit by cgroup v2, where cached files count as free; None without a limit."""
    try:
        most, used = (CGROUPS / "memory.max").read_text(), (CGROUPS / "memory.current").read_text()
        stat = dict(line.split() for line in (CGROUPS / "memory.stat").read_text().splitlines())
        return max(0, int(most) - int(used) + int(stat["inactive_file"]))
    except (OSError, ValueError, KeyError):  # "max" is no number
        return None


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


def peak_memory_bytes() -> int:
    """Peak resident memory of this process; 0 if the system does not report it.

    getrusage is not used: its value begins with the parent process's value.
    """
    return _bytes_of("/proc/self/status", "VmHWM") or 0


def use_one_thread() -> None:
    """Limits OpenCV to one thread, and torch too where torch is loaded. With the environment variables alone, a
    clip takes 0.88 s on the local engine, not 0.60 s."""
    opencv().setNumThreads(1)
    if torch := sys.modules.get("torch"):
        torch.set_num_threads(1)
