"""Pinning of each worker to cores of its own, which also sets its number of threads in every library. No torch here."""

import os
import tempfile
from pathlib import Path
from typing import BinaryIO

from core.system.files import lock

_taken: list[BinaryIO] = []
"""The locks of this process's cores; they end with it."""


def settle(threads: int) -> None:
    """Pins this process to so many cores that no other worker here has, and limits every library to as many threads.

    Call it before torch, OpenCV or numba are imported. If other workers have all cores, this one shares theirs.
    """
    for name in ("OMP", "MKL", "OPENBLAS", "NUMBA"):
        os.environ[f"{name}_NUM_THREADS"] = str(threads)
    os.environ["OPENCV_FOR_THREADS_NUM"] = str(threads)
    if not hasattr(os, "sched_setaffinity"):
        return
    folder = Path(tempfile.gettempdir()) / f"steadyseg-cores-{os.getuid()}"
    folder.mkdir(exist_ok=True)
    cores = sorted(os.sched_getaffinity(0))
    free = (core for core in cores if _take(folder / str(core)))
    mine = {core for _, core in zip(range(threads), free, strict=False)}
    shared = {cores[(os.getpid() + step) % len(cores)] for step in range(threads - len(mine))}
    os.sched_setaffinity(0, mine | shared)


def _take(path: Path) -> bool:
    file = path.open("ab")
    if not lock(file):
        file.close()
        return False
    _taken.append(file)
    return True


def peak_memory_bytes() -> int:
    """Peak resident memory of this process; 0 if the system does not tell.

    getrusage is not used: its value begins with that of the process that started this one.
    """
    try:
        lines = Path("/proc/self/status").read_text().splitlines()
    except OSError:
        return 0
    return next((1024 * int(line.split()[1]) for line in lines if line.startswith("VmHWM:")), 0)
