"""A record of the files that were read, so that results are not mistaken for those of another source of the same
name."""

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from app.sources.image_folder import list_images
from core.errors import InputError

CHUNK = 2**22


def fingerprint(source: str, each_chunk: Callable[[], object] = lambda: None) -> dict[str, Any]:
    """{path, bytes, modified_ns, sha256} of a file or a folder of images; {path} of anything else (the street).

    The digest is that of the file's content, and for a folder that of the names, sizes and times of its images.
    `each_chunk` is called for every 4 MB that are read. Raises InputError for what cannot be read.
    """
    path = Path(source)
    if not path.exists():
        return {"path": source}
    try:
        state = path.stat()
        if path.is_dir():
            states = [(image.name, image.stat().st_size, image.stat().st_mtime_ns) for image in list_images(path)]
            digest = hashlib.sha256(json.dumps(states).encode())
        else:
            digest = hashlib.sha256()
            with path.open("rb") as file:
                while chunk := file.read(CHUNK):
                    digest.update(chunk)
                    each_chunk()
    except OSError as error:
        raise InputError(f"{source}: cannot be read ({error.strerror})") from error
    return {"path": source, "bytes": state.st_size, "modified_ns": state.st_mtime_ns, "sha256": digest.hexdigest()}


def is_same(before: dict[str, Any], source: str) -> bool:
    """True if the source is the recorded one. A file whose size and time are unchanged is not read again."""
    path = Path(source)
    if path.is_file():
        state = path.stat()
        if state.st_size != before.get("bytes"):
            return False
        if (source, state.st_mtime_ns) == (before["path"], before.get("modified_ns")):
            return True
    now = fingerprint(source)
    return bool(before["sha256"] == now["sha256"] if {"sha256"} <= before.keys() & now.keys() else before == now)
