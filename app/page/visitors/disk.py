"""The folder of all visitors' files: a quota that counts what is still being written, and the removal of leftovers."""

import contextlib
import os
import shutil
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path

from core.errors import InputError

QUOTA = 8
"""Limit of all files together, as a multiple of the largest upload."""
MAX_FILES = 1000
"""A file counts for at least this fraction of the quota, so that the quota bounds the number of files too: the folder
is measured twice a second while a job runs, and 1,000 files take 3 ms."""
UPLOAD_S = 3600
"""Seconds after which an unused upload is removed; Gradio keeps all of them."""
FULL = "this page's disk space is used up; files that nobody needs go within the hour"


class Disk:
    """The quota of one folder. Every writer of a large file reserves its bytes first."""

    def __init__(self, folder: Path, max_upload: int) -> None:
        """`max_upload`: bytes of the largest upload."""
        self.folder, self.max_upload, self._max_bytes = folder, max_upload, QUOTA * max_upload
        folder.mkdir(parents=True, exist_ok=True)
        self._reserved: dict[str, int] = {}
        self._lock = threading.Lock()

    @contextlib.contextmanager
    def reserve(self, size: int) -> Iterator[Path]:
        """A context with a new folder for `size` bytes, which count as used until the end; then it is removed with
        what is left in it. Raises InputError if there is no room for them."""
        with self._lock:
            self.require_room(size)
            folder = Path(tempfile.mkdtemp(prefix="incoming-", dir=self.folder))
            self._reserved[folder.name] = size
        try:
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)
            del self._reserved[folder.name]

    def require_room(self, size: int = 0) -> None:
        """Raises InputError if `size` further bytes would exceed the quota, or if the disk is full."""
        reserved = size + sum(self._reserved.copy().values())
        if self._written() + reserved > self._max_bytes or shutil.disk_usage(self.folder).free < 2 * reserved:
            raise InputError(FULL)

    def is_full(self) -> bool:
        """True if the files take more than the quota."""
        try:
            self.require_room()
        except InputError:
            return True
        return False

    def sweep(self) -> None:
        """Removes uploads that nobody used for an hour; results go with their session."""
        for path in self.folder.iterdir():
            if path.name.startswith("session-") or path.name in self._reserved:
                continue
            with contextlib.suppress(OSError):  # it went by itself
                if time.time() - path.stat().st_mtime > UPLOAD_S:
                    shutil.rmtree(path) if path.is_dir() else path.unlink()

    def _written(self) -> int:
        """Bytes of all files outside the reserved folders, each counted once however many links it has.

        Files and folders may vanish at any time, when other visitors leave.
        """
        sizes: dict[int, int] = {}
        folders = [str(self.folder)]
        while folders:
            try:
                entries = list(os.scandir(folders.pop()))
            except FileNotFoundError:
                continue
            for entry in entries:
                with contextlib.suppress(FileNotFoundError):
                    if not entry.is_dir(follow_symlinks=False):
                        status = entry.stat(follow_symlinks=False)
                        sizes[status.st_ino] = max(status.st_size, self._max_bytes // MAX_FILES)
                    elif entry.name not in self._reserved:
                        folders.append(entry.path)
        return sum(sizes.values())
