"""Files and folders that are whole or absent: after a crash the old or the new one is there, never a part of it."""

import contextlib
import ctypes
import errno
import glob
import os
import secrets
import shutil
import stat
import sys
import tempfile
import time
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path
from typing import IO, Any

from steadyseg.core.errors import InputError, refuse_existing

if sys.platform != "win32":
    import fcntl

DISK_ERRORS = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
"""Numbers of an OSError: the disk or the quota is full, or a file grows beyond a limit."""
MANY_FILES = 20
"""Up to this many files of a folder are synced one by one, more by one sync of all disks: 500 would take seconds."""


def require_place(path: Path, what: str, suffixes: Collection[str], *, overwrite: bool) -> None:
    """Raises InputError, before any work is done, if `path` cannot become a file of one of these endings.

    `what` names it with its article, as in "a report".
    """
    if path.is_dir():
        raise InputError(f"{path}: is a folder; give the name of {what} in it")
    if path.suffix.lower() not in suffixes:
        raise InputError(f"{path}: {what} is a {', '.join(suffixes)} file; give it that ending")
    if not path.parent.is_dir():
        raise InputError(f"{path}: there is no folder {path.parent}; make it first")
    refuse_existing(path, overwrite)
    if not os.access(path.parent, os.W_OK):
        raise InputError(f"{path}: the folder {path.parent} cannot be written to{by_user()}; choose another one")


def require_new_folder(path: Path, inputs: Iterable[Path | str], *, overwrite: bool) -> None:
    """Raises InputError, before any work is done, if the folder exists and `overwrite` is False, has no parent, or
    would replace one of the inputs."""
    if path.name in ("", ".."):
        raise InputError(f"{path}: is the folder in use; give the name of a new one")
    refuse_existing(path, overwrite)
    if path.is_file():
        raise InputError(f"{path}: is a file; give the name of a folder")
    if not path.absolute().parent.is_dir():
        raise InputError(f"{path}: there is no folder {path.parent}; make it first")
    if not os.access(path.absolute().parent, os.W_OK):
        raise InputError(f"{path}: the folder {path.parent} cannot be written to{by_user()}; choose another one")
    for one in inputs:
        if path.exists() and Path(one).resolve().is_relative_to(path.resolve()):
            raise InputError(f"{path}: would be replaced while {one} in it is read; choose another folder")


def no_link(path: str, flags: int) -> int:
    """An opener for `open` of a file in a folder of unknown origin. InputError for a link and for no regular file."""
    try:
        descriptor = os.open(path, flags | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0), 0o666)
    except OSError as error:
        if error.errno not in (errno.ELOOP, errno.EISDIR, errno.ENXIO):
            raise
    else:
        if stat.S_ISREG(os.fstat(descriptor).st_mode):
            return descriptor
        os.close(descriptor)
    raise InputError(f"{path}: is a link or no regular file; remove it, as writing could change another file")


def read_small(path: Path, limit: int = 2**24) -> bytes:
    """The bytes of a regular file. OSError for a pipe or device, which might never end, and for more than `limit`."""
    with open(path, "rb", opener=lambda name, flags: os.open(name, flags | getattr(os, "O_NONBLOCK", 0))) as file:
        status = os.fstat(file.fileno())
        if not stat.S_ISREG(status.st_mode):
            raise OSError(errno.EINVAL, "no regular file", str(path))
        data = file.read(limit + 1) if status.st_size <= limit else b""
        if max(status.st_size, len(data)) > limit:
            raise OSError(errno.EFBIG, f"more than {limit} bytes", str(path))
        return data


def partial_path(path: Path) -> Path:
    """A hidden, unused name beside `path`.

    The name is random. The number of the process would repeat, since it is 1 in every container, and a killed process
    leaves its file behind.
    """
    return path.with_name(f".{path.name}.{secrets.token_hex(4)}.partial")


def write_atomic(path: Path, data: bytes, durable: bool = True) -> None:
    """Writes a hidden file that replaces `path` on success and is removed after an error.

    `durable`: flushed to disk first, so that a power cut too leaves the old or the new file. Raises OSError with the
    name `path` if it cannot be written.
    """
    partial = partial_path(path)
    try:
        try:
            with partial.open("xb") as file:
                file.write(data)
                file.flush()
                if durable:
                    os.fsync(file.fileno())
            with contextlib.suppress(FileNotFoundError):  # a new file has the mode of the user's umask
                shutil.copymode(path, partial)
            os.replace(partial, path)
        except BaseException:
            partial.unlink(missing_ok=True)
            raise
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(path)) from error


@contextlib.contextmanager
def whole_folder(path: Path, *, replace: bool) -> Iterator[Path]:
    """A context with a hidden folder that gets the name `path`, synced to disk, on success and is removed after an
    error.

    `replace`: a folder that is there is removed; otherwise it is kept, and the new one is dropped.
    """
    remove_leftovers(path)
    partial = partial_path(path)
    partial.mkdir()
    try:
        with _held(partial):
            yield partial
        _sync_folder(partial)
        _rename_folder(partial, path, replace)
        _sync(path.parent)
    finally:
        shutil.rmtree(partial, ignore_errors=True)


LEFT_S = 60.0
"""Least age of a leftover in seconds: a younger folder may belong to a process that has not locked it yet."""


def remove_leftovers(path: Path, least_s: float = LEFT_S) -> None:
    """Removes partial files and folders of this path that nobody locks: killed processes left them behind."""
    for leftover in path.parent.glob(f".{glob.escape(path.name)}.*.partial"):
        with contextlib.suppress(OSError):  # the file may be another user's, or gone
            descriptor = os.open(leftover, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0))
            try:
                if time.time() - os.fstat(descriptor).st_mtime < least_s or not lock(descriptor):
                    continue
                if stat.S_ISDIR(os.fstat(descriptor).st_mode):
                    shutil.rmtree(leftover)
                else:
                    leftover.unlink()
            finally:
                os.close(descriptor)


@contextlib.contextmanager
def _held(folder: Path) -> Iterator[bool]:
    """Locks a folder, so that no other process takes it for a leftover; False if somebody else holds it."""
    if sys.platform == "win32":  # Windows cannot open a folder
        yield True
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        yield lock(descriptor)
    finally:
        os.close(descriptor)


def by_user() -> str:
    """Words about the user in a message, for containers, whose user is another than a mounted folder's."""
    return "" if sys.platform == "win32" else f" by user {os.getuid()} (docker run --user sets a container's user)"


def cache_file(name: str) -> Path:
    """Returns the path of a file in $STEADYSEG_CACHE, $XDG_CACHE_HOME/steadyseg or ~/.cache/steadyseg.

    The folder may not exist. A user without a home has `private_folder`.
    """
    if own := os.environ.get("STEADYSEG_CACHE"):
        return Path(own) / name
    home = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")  # "~" stays for a user without a home
    if home.startswith("~"):
        return private_folder() / name  # another user cannot put files there, which numba would run
    return Path(home) / "steadyseg" / name


def private_folder() -> Path:
    """Returns the folder that the run-time files of this user's processes share, made where it is absent.

    It lies in XDG_RUNTIME_DIR, else in the temporary folder, where another user may have made it first. InputError for
    a link, a folder of another user, and a folder that others may enter.
    """
    base = Path(os.environ.get("XDG_RUNTIME_DIR", ""))
    folder = (
        base if base.is_absolute() and base.is_dir() else Path(tempfile.gettempdir())
    ) / f"steadyseg-{os.getuid()}"
    with contextlib.suppress(FileExistsError):
        folder.mkdir(0o700)
    if not is_private(folder):
        raise InputError(
            f"{folder}: must be a folder that this user alone may enter; remove it, or set XDG_RUNTIME_DIR to a folder "
            "of your own"
        )
    return folder


def is_private(folder: Path) -> bool:
    """False for a link, a folder of another user, and a folder that others may enter; Windows has no such modes."""
    if sys.platform == "win32":
        return folder.is_dir()
    found = folder.lstat()
    return stat.S_ISDIR(found.st_mode) and found.st_uid == os.getuid() and not found.st_mode & 0o077


def lock(file: IO[Any] | int, *, for_children: bool = True) -> bool:
    """Locks an open file (or its descriptor) until it is closed or the process ends; False if somebody else holds it.

    `for_children` True uses flock: the lock belongs to the open file, so a forked child holds it too. False uses lockf:
    the lock belongs to the process and ends when any of its handles on that file is closed. It needs a file that is
    open for writing. On Windows nothing is locked, and it returns True.
    """
    if sys.platform == "win32":
        return True
    try:
        (fcntl.flock if for_children else fcntl.lockf)(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno in (errno.EACCES, errno.EAGAIN):  # POSIX allows either
            return False
        raise
    return True


@contextlib.contextmanager
def locked_folder(folder: Path) -> Iterator[None]:
    """A context in which this process alone downloads into the folder; InputError where another one does."""
    with _held(folder) as is_free:
        if not is_free:
            raise InputError(f"{folder}: another download is at work in it; wait for its end or stop it")
        yield


def describe_disk_error(error: OSError) -> str:
    """Returns one line about an error of `DISK_ERRORS`."""
    where = f"{error.filename}: cannot be written" if error.filename else "a file cannot be written"
    return f"{where} ({error.strerror}); make room or choose another disk: what was written before is whole"


def _rename_folder(partial: Path, path: Path, replace: bool) -> None:
    try:
        os.rename(partial, path)  # also replaces an empty folder
    except OSError as error:
        if error.errno not in (errno.EEXIST, errno.ENOTEMPTY):
            raise
        if replace and not _exchange(partial, path):
            old = partial_path(path)
            os.rename(path, old)
            os.rename(partial, path)
            shutil.rmtree(old)


def _exchange(one: Path, other: Path) -> bool:
    """Exchanges two names atomically, so that neither is ever missing; returns False if the system cannot."""
    rename = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None) if sys.platform == "linux" else None
    if rename is None:
        return False
    here, exchange = -100, 2  # AT_FDCWD and RENAME_EXCHANGE of Linux
    return bool(rename(here, os.fsencode(one.absolute()), here, os.fsencode(other.absolute()), exchange) == 0)


def _sync_folder(folder: Path) -> None:
    paths = [*folder.rglob("*"), folder]
    if len(paths) > MANY_FILES:
        os.sync()
        return
    for path in paths:
        _sync(path)


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
