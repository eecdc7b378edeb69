"""Uploads and results of visitors of the File tab on the disk, and their removal."""

import contextlib
import re
import shutil
import stat
import tempfile
import threading
import time
from collections import OrderedDict
from collections.abc import Iterator
from pathlib import Path

from core.errors import InputError

MAX_SESSIONS = 16
"""Largest number of sessions, each of which may hold a video; one more visitor ends the idle session that was unused
for longest."""
QUOTA = 8
"""Limit of all files together, as a multiple of the largest upload."""
MIN_FILE = 2**16
"""Bytes that a file counts for at least, so that the quota bounds the number of files too."""
SWEEP_S = 60
UPLOAD_S, PARTIAL_S = 3600, 120
"""Seconds after which an unused upload, and an upload that broke off, is removed; Gradio keeps both."""


class Session:
    """One open page in one browser. Results go to folders inside `folder`, where Gradio puts the uploads."""

    def __init__(self, folder: Path) -> None:
        self.stop_asked = False
        self.uploads: dict[Path, int] = {}
        """The uploads that this session's jobs took, with their inodes: an identical upload that came later is
        another file."""
        self._folder = folder
        self._results: Path | None = None
        self._closed = False
        self._busy = threading.Lock()

    @property
    def busy(self) -> bool:
        """True while a job runs."""
        return self._busy.locked()

    @contextlib.contextmanager
    def job(self) -> Iterator[Path]:
        """A new folder for the results of one job; those of the previous job are removed. One job at a time."""
        if not self._busy.acquire(blocking=False):
            raise InputError("a file is being segmented already; stop it first or wait for it")
        try:
            self.stop_asked = False
            self._remove_results()
            self._folder.mkdir(parents=True, exist_ok=True)
            self._results = Path(tempfile.mkdtemp(prefix="session-", dir=self._folder))
            yield self._results
        finally:
            self._busy.release()
            if self._closed:
                self._remove_results()

    def take(self, spec: str, folder: Path) -> Path:
        """Links an upload into the job's own folder, where it stays when another visitor's session ends.

        `spec` comes from a browser, so it can be anything. Raises InputError for all but an upload.
        """
        path = Path(spec)
        require_upload(spec, self._folder)
        try:
            own = folder / path.name
            own.hardlink_to(path)
        except (OSError, ValueError) as error:
            raise InputError("the upload is gone, as it lay unused for long; choose the file again") from error
        self.uploads[path] = own.stat().st_ino
        return own

    def close(self) -> None:
        """Removes the results; a job that is still running is stopped and removes its own."""
        self._closed = self.stop_asked = True
        if not self.busy:
            self._remove_results()

    def _remove_results(self) -> None:
        if self._results is not None:
            shutil.rmtree(self._results, ignore_errors=True)


def require_upload(spec: str, folder: Path) -> None:
    """Raises InputError for all but a regular file that Gradio stored for an upload: FOLDER/SHA-256/NAME."""
    path = Path(spec)
    stored = path.parent.parent == folder and re.fullmatch("[0-9a-f]{64}", path.parent.name)
    try:
        if stored and stat.S_ISREG(path.lstat().st_mode):
            return
    except FileNotFoundError as error:
        raise InputError("the upload is gone, as it lay unused for long; choose the file again") from error
    except (OSError, ValueError):  # a name that no file can have
        pass
    raise InputError("that is not a file that was uploaded here; choose it again")


class Sessions:
    """Sessions by Gradio's session hash, made when first asked for, and the folder that all of them write to.

    Gradio keeps a `gr.State` for an hour after its page is closed (STATE_TTL_WHEN_CLOSED); these end with the page.
    """

    def __init__(self, folder: Path, max_upload: int) -> None:
        """`max_upload`: bytes of the largest upload."""
        self.folder, self._max_bytes = folder, QUOTA * max_upload
        self._open: OrderedDict[str, Session] = OrderedDict()
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._open)

    def get(self, key: str) -> Session:
        """The session of that hash. Raises InputError where all are at work: nobody's job makes room for a newcomer."""
        with self._lock:
            if key not in self._open and len(self._open) >= MAX_SESSIONS:
                idle = next((name for name, session in self._open.items() if not session.busy), None)
                if idle is None:
                    raise InputError(f"{MAX_SESSIONS} files are being segmented already; try again when one is done")
                self._end(self._open.pop(idle))
            session = self._open.setdefault(key, Session(self.folder))
            self._open.move_to_end(key)
        return session

    def stop(self, key: str) -> None:
        """Asks the job of that session to stop, if there is one."""
        with self._lock:
            session = self._open.get(key)
        if session is not None:
            session.stop_asked = True

    def close(self, key: str) -> None:
        """Ends that session, if there is one."""
        with self._lock:
            session = self._open.pop(key, None)
            if session is not None:
                self._end(session)

    def _end(self, session: Session) -> None:
        """Ends a session and removes its uploads, but for those that another session uses or a visitor uploaded again
        since."""
        session.close()
        for path, inode in session.uploads.items():
            if not any(path in other.uploads for other in self._open.values()):
                with contextlib.suppress(OSError):
                    if path.stat().st_ino == inode:
                        path.unlink()

    def refuse(self, more: int) -> str | None:
        """Returns the reason why an upload of `more` bytes is refused, or None."""
        if self._used() + more > self._max_bytes or shutil.disk_usage(self.folder).free < 2 * more:
            return "this page's disk space is used up; files that nobody needs go within the hour"
        return None

    def sweep(self) -> None:
        """Removes uploads that nobody used for an hour and parts of broken uploads; results are removed with their
        session."""
        now_s = time.time()
        for path in list(self.folder.iterdir()):
            if path.name.startswith("session-"):
                continue
            try:
                age_s = now_s - path.stat().st_mtime
                if path.is_dir() and age_s > UPLOAD_S:
                    shutil.rmtree(path)
                elif path.is_file() and age_s > PARTIAL_S:
                    path.unlink()
            except OSError:  # it went by itself
                continue

    def _used(self) -> int:
        """Bytes of all files, each counted once."""
        found = (path.lstat() for path in self.folder.rglob("*") if not path.is_dir())
        sizes = {entry.st_ino: max(entry.st_size, MIN_FILE) for entry in found}
        return sum(sizes.values())
