"""Fetches CIFAR-10 or CIFAR-100: one archive, resumable, verified, and unpacked as a whole."""

import gzip
import hashlib
import os
import re
import shutil
import tarfile
import tempfile
import time
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from http.client import HTTPResponse
from pathlib import Path
from typing import Literal, cast
from urllib.error import HTTPError
from urllib.request import Request, urlopen

from steadyseg.core.errors import InputError
from steadyseg.core.system.fetching import HEADERS, FetchError, fetch_errors, in_line, with_retries
from steadyseg.core.system.files import locked_folder

SOURCE_NOTE = (
    "CIFAR-10 and CIFAR-100 are published without a licence text (https://www.cs.toronto.edu/~kriz/cifar.html). "
    "Please cite Krizhevsky, 'Learning Multiple Layers of Features from Tiny Images', 2009."
)
SILENCE_TIMEOUT_S = 30.0
"""Time-out for the connection, and for the next bytes on it."""
BACKOFF_S = (1.0, 4.0)
"""Pauses between the three tries; each try goes on where the one before broke off."""

_CHUNK_BYTES = 1 << 18


@dataclass(frozen=True)
class Archive:
    """A published .tar.gz and its files."""

    url: str
    sha256: str
    bytes: int
    folder: str
    files: dict[str, str]
    """MD5 by file name inside the folder: it detects damage and other files of that name, but no forgery. A fetched
    archive is checked against its SHA-256 before it is unpacked."""


ARCHIVES = {
    "cifar10": Archive(
        "https://www.cs.toronto.edu/~kriz/cifar-10-python.tar.gz",
        "6d958be074577803d12ecdefd02955f39262c83c16fe9348329d7fe0b5c001ce",
        170_498_071,
        "cifar-10-batches-py",
        {
            "data_batch_1": "c99cafc152244af753f735de768cd75f",
            "data_batch_2": "d4bba439e000b95fd0a9bffe97cbabec",
            "data_batch_3": "54ebc095f3ab1f0389bbae665268c751",
            "data_batch_4": "634d18415352ddfa80567beed471001a",
            "data_batch_5": "482c414d41f54cd18b22e5b47cb7c3cb",
            "test_batch": "40351d587109b95175f43aff81a1287e",
            "batches.meta": "5ff9c542aee3614f3951f8cda6e48888",
        },
    ),
    "cifar100": Archive(
        "https://www.cs.toronto.edu/~kriz/cifar-100-python.tar.gz",
        "85cd44d02ba6437773c5bbd22e183051d648de2e7d6b014e1ef29b855ba677a7",
        169_001_437,
        "cifar-100-python",
        {
            "train": "16019d7e3df5f24257cddd939b257f8d",
            "test": "f0ef6b0ae62326f3e7ffdfab6717acfc",
            "meta": "7973b15100ade9c7d40fb424638fde48",
        },
    ),
}
"""Archives by the names of `steadyseg data`.

The SHA-256 are those of Keras (keras/src/datasets/cifar10.py, cifar100.py); the download page has MD5 alone. The MD5 of
the files are torchvision's.
"""


@dataclass(frozen=True)
class DownloadReport:
    """Result of a finished download."""

    folder: Path
    """Folder with the files."""
    fetched_bytes: int
    """Bytes fetched in this run; 0: nothing was missing."""


def download_cifar(
    archive: Archive, root: Path, *, on_progress: Callable[[int, int], None] | None = None
) -> DownloadReport:
    """Makes `root/archive.folder` hold the published files.

    Files with the right sum are kept; others in their place are refused and never overwritten. The archive is fetched
    into a hidden file under `root`, which a later call completes, and is deleted once it is unpacked.
    `on_progress(bytes there, all bytes)`. InputError in one line for everything that goes wrong.
    """
    folder = root / archive.folder
    if folder.exists():
        if wrong := _first_wrong(folder, archive):
            raise InputError(f"{wrong}; nothing was changed: move {folder} away or give another -o")
        return DownloadReport(folder, 0)
    part = root / f".{archive.url.rsplit('/', 1)[1]}.part"
    try:
        root.mkdir(parents=True, exist_ok=True)
        with locked_folder(root, "download"):  # two would write into one part file
            fetched = _fetch(archive, part, on_progress or (lambda there, total: None))
            _unpack(archive, part, root)
            part.unlink()
    except OSError as error:
        raise InputError(
            f"{error.filename or root}: cannot be written ({in_line(error)}); give a root folder that is writable and "
            f"has {3 * archive.bytes / 1e9:.1f} GB of room"
        ) from error
    return DownloadReport(folder, fetched)


def _first_wrong(folder: Path, archive: Archive) -> str | None:
    """Describes the first file that is not as published; None where all are."""
    for name, md5 in archive.files.items():
        path = folder / name
        if not path.is_file():
            return f"{path}: missing"
        try:
            if _digest(path, "md5") != md5:
                return f"{path}: not the published file"
        except OSError as error:
            return f"{path}: cannot be read ({in_line(error)})"
    return None


def _fetch(archive: Archive, part: Path, show: Callable[[int, int], None]) -> int:
    """Makes sure that the right archive is at `part`; returns the bytes fetched."""
    fetched = 0

    def count(size: int, there: int) -> None:
        nonlocal fetched
        fetched += size
        show(there, archive.bytes)

    try:
        with_retries(lambda: _fetch_once(archive, part, count), BACKOFF_S, time.sleep)
    except FetchError as failure:
        there = _size(part)
        kept = f": it goes on from {there / 1e6:.1f} MB" if there else ""
        raise InputError(f"{archive.url} {failure}; run the same command again{kept}") from failure
    return fetched


def _fetch_once(archive: Archive, part: Path, count: Callable[[int, int], None]) -> None:
    there = _size(part)
    if there > archive.bytes or (there == archive.bytes and _digest(part, "sha256") != archive.sha256):
        part.unlink()
        there = 0
    if there < archive.bytes:
        _append(archive, part, there, count)
    if _size(part) < archive.bytes:
        raise FetchError(f"broke off after {_size(part)} of {archive.bytes} bytes; check the network")
    if _digest(part, "sha256") != archive.sha256:
        part.unlink()
        raise FetchError(
            f"sent {archive.bytes} bytes that do not match the SHA-256 {archive.sha256}; a broken connection, or a "
            "proxy or login page that answers instead",
            transient=there > 0,
        )


def _append(archive: Archive, part: Path, there: int, count: Callable[[int, int], None]) -> None:
    """Requests the missing bytes; where the server sends the whole file instead, it starts anew.

    Only the network access is inside `fetch_errors`: a full disk is not a broken connection.
    """
    with _open(archive.url, part, there) as response:
        resumed = response.status == 206 and re.match(rf"bytes {there}-", response.headers.get("Content-Range", ""))
        there = there if resumed else 0
        with part.open("r+b" if there else "wb") as file:
            file.seek(there)
            while chunk := _next_chunk(response):
                there += len(chunk)
                if there > archive.bytes:
                    raise FetchError(f"sends more than the {archive.bytes} bytes of the archive", transient=False)
                file.write(chunk)
                count(len(chunk), there)


def _open(url: str, part: Path, there: int) -> HTTPResponse:
    headers = HEADERS | ({"Range": f"bytes={there}-"} if there else {})
    with fetch_errors():
        try:
            return cast(HTTPResponse, urlopen(Request(url, headers=headers), timeout=SILENCE_TIMEOUT_S))
        except HTTPError as error:
            if error.code != 416:
                raise
            with error:
                part.unlink()
            raise FetchError(f"has less than the {there} bytes that were fetched before") from error


def _next_chunk(response: HTTPResponse) -> bytes:
    with fetch_errors():
        return response.read1(_CHUNK_BYTES)


def _unpack(archive: Archive, part: Path, root: Path) -> None:
    """Unpacks beside the folder and renames, so that the folder under its own name is whole."""
    beside = Path(tempfile.mkdtemp(prefix=f".{archive.folder}.", suffix=".part", dir=root))
    try:
        with tarfile.open(part, "r:gz") as tar:
            tar.extractall(beside, filter="data")
        if wrong := _first_wrong(beside / archive.folder, archive):
            raise InputError(f"{part}: unpacks to {wrong}; delete it and run again")
        os.replace(beside / archive.folder, root / archive.folder)
    except (tarfile.TarError, EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise InputError(f"{part}: cannot be unpacked ({in_line(error)}); delete it and run again") from error
    finally:
        for left in root.glob(f".{archive.folder}.*.part"):  # of killed runs too
            shutil.rmtree(left, ignore_errors=True)


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


def _digest(path: Path, name: Literal["sha256", "md5"]) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, lambda: hashlib.new(name, usedforsecurity=name != "md5")).hexdigest()
