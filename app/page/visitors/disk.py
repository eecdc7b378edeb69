"""The folder of all visitors' files: a quota that counts what is still being written, and the removal of leftovers."""

import contextlib
import os
import re
import shutil
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from steadyseg.core.errors import InputError

QUOTA = 8
"""Limit of all files together, as a multiple of the largest upload."""
MAX_FILES = 1000
"""A file counts for at least this fraction of the quota, so that the quota bounds the number of files too: the folder
is measured twice a second while a job runs, and 1,000 files take 3 ms."""
UPLOAD_S, SPARE_S = 3600, 600
"""Seconds after which an unused upload is removed, and after which it makes room for any other; Gradio keeps all."""
UPLOAD_FOLDER = re.compile("[0-9a-f]{64}")
"""Name of the folder of an upload: its SHA-256."""
FULL = "this page's disk space is used up; files that nobody needs go within the hour"


class File(NamedTuple):
    """A file of a visitor."""

    path: str
    size: int
    """Bytes that count."""
    is_unused: bool
    """True for an upload that no job took: a job has a link to its own."""
    age_s: float


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
        """Raises InputError if `size` further bytes would exceed the quota, or if the disk is full.

        Uploads that no job took make room first: those larger than `size`, so that whoever fills the quota with large
        files cannot keep others out, and those of ten minutes ago.
        """
        reserved, files = size + sum(self._reserved.copy().values()), self._files()
        excess = sum(file.size for file in files) + reserved - self._max_bytes
        spare = [file for file in files if file.is_unused and (file.size > size or file.age_s > SPARE_S)]
        if excess > sum(file.size for file in spare) or shutil.disk_usage(self.folder).free < 2 * reserved:
            raise InputError(FULL)
        for file in sorted(spare, key=lambda file: file.size, reverse=True):
            if excess <= 0:
                break
            Path(file.path).unlink(missing_ok=True)
            excess -= file.size

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

    def _files(self) -> list[File]:
        """All files outside the reserved folders, each once however many links it has.

        Files and folders may vanish at any time, when other visitors leave.
        """
        files: dict[int, File] = {}
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
                        size = max(status.st_size, self._max_bytes // MAX_FILES)
                        unused = (
                            status.st_nlink == 1 and UPLOAD_FOLDER.fullmatch(Path(entry.path).parent.name) is not None
                        )
                        files[status.st_ino] = File(entry.path, size, unused, time.time() - status.st_mtime)
                    elif entry.name not in self._reserved:
                        folders.append(entry.path)
        return list(files.values())
