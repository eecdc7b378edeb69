"""Training frees and takes the same hundreds of megabytes every step; glibc hands them back to the system each time."""

import ctypes
import sys

_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3
_NEVER = 2**31 - 1


def keep_freed_memory() -> bool:
    """Tells glibc to keep freed blocks for the next step; returns whether that was possible (elsewhere nothing changes).

    Width 16, batch 4 of 288x384, two cores, bf16: 590 -> 530 ms a step, the difference being page faults.
    """
    if not sys.platform.startswith("linux"):
        return False
    try:
        mallopt = ctypes.CDLL("libc.so.6").mallopt
    except (OSError, AttributeError):
        return False
    return bool(mallopt(_M_MMAP_THRESHOLD, _NEVER)) and bool(mallopt(_M_TRIM_THRESHOLD, _NEVER))
