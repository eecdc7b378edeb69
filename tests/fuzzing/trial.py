"""Opens one file in a process of its own, within limits, and says how far it came and how it ended."""

import contextlib
import os
import resource
import signal
import time
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from steadyseg.core.errors import CheckFailed, InputError

SECONDS = 20
"""Of processor time: a busy machine makes no hang."""
WAITED = 10
"""A file may wait so many times as long, also where it computes nothing."""
ROOM_BYTES = 4 * 2**30
"""Address space beyond what the parent has: a file that wants more ends in an error instead of this machine's."""
Stages = Callable[[Path], Iterator[str]]
"""Opens a file and yields what has been passed; at least half of the damaged files must pass the first."""


@dataclass(frozen=True)
class Trial:
    """Outcome of opening one file."""

    stages: tuple[str, ...]
    """Stages that the file passed."""
    end: str
    """whole, refused, traceback, hang or killed."""
    why: str
    """The refusal's line, or the traceback's last ones."""
    seconds: float
    peak_bytes: int
    """Resident memory, the parent's included: on some kernels the most that the parent ever had."""


def try_file(stages: Stages, path: Path) -> Trial:
    """Forks: what the parent has imported is there at once. The parent must have started no threads."""
    reading, writing = os.pipe()
    began = time.monotonic()
    child = os.fork()
    if child == 0:
        os.close(reading)
        _open_in_child(stages, path, writing)
    os.close(writing)
    with os.fdopen(reading, errors="replace") as pipe:
        *passed, last = pipe.read().split("\0") or [""]
    _, status, usage = os.wait4(child, 0)
    seconds = time.monotonic() - began
    if os.WIFSIGNALED(status):
        name = signal.Signals(os.WTERMSIG(status)).name
        end, why = ("hang", f"over {SECONDS} s") if name in ("SIGPROF", "SIGALRM") else ("killed", name)
    else:
        end, _, why = last.partition(": ")
    return Trial(tuple(passed), end, why, seconds, usage.ru_maxrss * 1024)


def _open_in_child(stages: Stages, path: Path, writing: int) -> None:
    """Never returns."""
    nothing = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(nothing, stream)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    room = _address_space() + ROOM_BYTES
    resource.setrlimit(resource.RLIMIT_AS, (room, room))
    signal.setitimer(signal.ITIMER_PROF, SECONDS)
    signal.alarm(WAITED * SECONDS)
    try:
        for stage in stages(path):
            os.write(writing, f"{stage}\0".encode())
        last = "whole"
    except (InputError, CheckFailed) as error:
        last = f"refused: {error}"
    except BaseException as error:
        where = traceback.extract_tb(error.__traceback__)[-1]
        last = f"traceback: {type(error).__name__} in {Path(where.filename).name}:{where.lineno}: {str(error)[:200]}"
    with contextlib.suppress(OSError):
        os.write(writing, last.encode(errors="replace"))
    os._exit(0)


def _address_space() -> int:
    return int(Path("/proc/self/statm").read_text().split()[0]) * os.sysconf("SC_PAGE_SIZE")
