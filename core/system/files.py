"""Files that are whole or not there: after a crash the old or the new one is found, never half of it."""

import contextlib
import errno
import os
import tempfile
from pathlib import Path

DISK_ERRORS = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
"""Of an OSError: the disk or the quota is full, or a file grows beyond what its file system or a limit allows."""


def write_atomic(path: Path, data: bytes, durable: bool = True) -> None:
    """Written beside, flushed to disk and renamed; what was there is replaced.

    `durable`: a power cut too leaves the old or the new one. OSError with the file's name where it cannot be written.
    """
    try:
        descriptor, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write(data)
                file.flush()
                if durable:
                    os.fsync(file.fileno())
            os.chmod(temporary, 0o644)
            os.replace(temporary, path)
        except BaseException:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(temporary)
            raise
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(path)) from error


def describe_disk_error(error: OSError) -> str:
    """One line of an error of `DISK_ERRORS`."""
    where = f"{error.filename}: cannot be written" if error.filename else "a file cannot be written"
    return f"{where} ({error.strerror}); make room or choose another disk: what was written before is whole"
