"""The number of workers that fit on this machine, by its cores and by the measured memory of one worker."""

import os
from pathlib import Path

from core.system.machine import available_cpus

KEPT_FREE = 0.1
"""Share of the machine's free memory that is left free: frames of later videos may be larger than the first one's."""
CGROUP = Path("/sys/fs/cgroup")


def usable_cores() -> int:
    """Cores that this process may use; in a container with a limit (cgroup v2), the whole cores of that limit."""
    try:
        quota, period = (CGROUP / "cpu.max").read_text().split()
        return max(1, min(available_cpus(), int(quota) // int(period)))
    except (OSError, ValueError):  # no cgroup, or no limit: "max"
        return available_cpus()


def workers_that_fit(threads: int, memory_bytes: int, free_bytes: int) -> int:
    """Number of workers of `memory_bytes` each, one of which ran when `free_bytes` were measured."""
    by_memory = 1 + int((1 - KEPT_FREE) * free_bytes / max(memory_bytes, 1))
    return max(1, min(usable_cores() // threads, by_memory))


def free_memory_bytes() -> int:
    """Memory in bytes that new processes can have without swapping; in a container with a limit, the rest of that
    limit."""
    free = [value for value in (_available(), _left_of_container()) if value is not None]
    return min(free, default=os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))


def _available() -> int | None:
    try:
        lines = Path("/proc/meminfo").read_text().splitlines()
    except OSError:
        return None
    return next((1024 * int(line.split()[1]) for line in lines if line.startswith("MemAvailable:")), None)


def _left_of_container() -> int | None:
    """Rest of the memory limit by cgroup v2, where cached files count as free; None: no limit."""
    try:
        most, used = (CGROUP / "memory.max").read_text(), (CGROUP / "memory.current").read_text()
        stat = dict(line.split() for line in (CGROUP / "memory.stat").read_text().splitlines())
        return max(0, int(most) - int(used) + int(stat["inactive_file"]))
    except (OSError, ValueError, KeyError):  # "max" is no number
        return None
