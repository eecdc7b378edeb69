"""Locks on open files, which end with the process that holds them, however it ends."""

import errno
from typing import IO, Any

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]


def lock(file: IO[Any], *, for_children: bool = True) -> bool:
    """Takes the lock until `file` is closed; False where somebody else has it. Without locks (Windows) it is always
    taken.

    By flock, a lock of the open file, which a forked child has too. Not `for_children`: by lockf, the process's own; it
    ends with the first of the process's handles on that file to be closed, and `file` must be open for writing.
    """
    if fcntl is None:
        return True
    try:
        (fcntl.flock if for_children else fcntl.lockf)(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno in (errno.EACCES, errno.EAGAIN):  # POSIX leaves open which
            return False
        raise
    return True
