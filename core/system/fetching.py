"""Downloads of files with a known hash, tried again after temporary failures."""

import re
import shutil
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import sha1 as new_sha1
from http.client import HTTPException
from pathlib import Path
from urllib.error import HTTPError, URLError

from steadyseg.core.errors import in_line
from steadyseg.core.system.files import DISK_ERRORS, locked_folder

PAUSES_S = (1.0, 4.0)
"""Pauses between the three tries."""
SILENCE_TIMEOUT_S = 30.0
"""Time-out for the connection, and for the next bytes on it."""
PARTS = ".steadyseg-parts"
"""Folder of unfinished files."""
LONGEST_RETRY_AFTER_S = 60.0
TRANSIENT_STATUS = frozenset({408, 425, 429, 500, 502, 503, 504})


class FetchError(Exception):
    """Failure of one try at one file; the message completes "URL ..."."""

    def __init__(self, what: str, *, transient: bool = True, wait_s: float = 0.0) -> None:
        super().__init__(what)
        self.transient = transient
        self.wait_s = wait_s


@contextmanager
def silence_timeout() -> Iterator[None]:
    """A context in which new connections end after `SILENCE_TIMEOUT_S` without a byte; torch.hub sets no limit."""
    before = socket.getdefaulttimeout()
    socket.setdefaulttimeout(SILENCE_TIMEOUT_S)
    try:
        yield
    finally:
        socket.setdefaulttimeout(before)


@contextmanager
def unfinished_files(root: Path) -> Iterator[Path]:
    """A context in which this process alone downloads into `root`, with a name for a folder of unfinished files.

    The folder is removed at the end, with the files that a killed run left in it.
    """
    with locked_folder(root), silence_timeout():
        try:
            yield root / PARTS
        finally:
            shutil.rmtree(root / PARTS, ignore_errors=True)


def fetch(url: str, path: Path, *, sha256: str = "", git_sha1: str = "", progress: bool = False) -> None:
    """Fetches a file with one of the hashes to `path`; a busy server is tried again after the time that it names.

    The folder of `path` is made. With `git_sha1` a file of another hash may be left at `path`. Raises FetchError for
    the last try, and OSError if `path` cannot be written.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    for pause_s in PAUSES_S:
        try:
            return _fetch_once(url, path, sha256, git_sha1, progress)
        except FetchError as failure:
            if not failure.transient:
                raise
            time.sleep(max(pause_s, failure.wait_s))
    return _fetch_once(url, path, sha256, git_sha1, progress)


def blob_sha1(content: bytes) -> str:
    """Returns the name that git gives to a file's content: SHA-1 over `blob <size>\\0` and the bytes."""
    return new_sha1(b"blob %d\0" % len(content) + content, usedforsecurity=False).hexdigest()


def _fetch_once(url: str, path: Path, sha256: str, git_sha1: str, progress: bool) -> None:
    other = "sent something else (its hash differs): a broken connection, or a proxy or login page that answers instead"
    import torch  # imported here: it takes seconds, and most commands fetch nothing

    try:
        torch.hub.download_url_to_file(url, str(path), sha256 or None, progress)
    except HTTPError as error:
        with error:
            raise _as_fetch_error(error) from error
    except URLError as error:
        raise FetchError(f"cannot be reached ({in_line(error.reason)}); check the network") from error
    except (OSError, HTTPException, ValueError) as error:  # ValueError of a proxy that is no address
        if isinstance(error, OSError) and (error.filename or error.errno in DISK_ERRORS):
            raise
        raise FetchError(f"broke off ({in_line(error)}); check the network") from error
    except RuntimeError as error:  # torch.hub's error for a wrong hash
        raise FetchError(other) from error
    if git_sha1 and blob_sha1(path.read_bytes()) != git_sha1:
        raise FetchError(other)


def _as_fetch_error(error: HTTPError) -> FetchError:
    """The FetchError of an HTTP status: a 404 is permanent; a busy server is tried again after the time it names."""
    asked = error.headers.get("Retry-After", "")
    wait_s = min(float(asked), LONGEST_RETRY_AFTER_S) if re.fullmatch(r"[0-9]{1,9}", asked) else 0.0
    return FetchError(
        f"answered {error.code} {in_line(error.reason)}", transient=error.code in TRANSIENT_STATUS, wait_s=wait_s
    )
