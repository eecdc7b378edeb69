"""The visitors of the tab File: their jobs, uploads and results, which are removed when their page is closed."""

import contextlib
import re
import shutil
import stat
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path

from steadyseg.core.errors import InputError

MAX_SESSIONS = 64
"""Number of sessions that keep files. A further session ends the longest unused session, since a session with an
invented key never ends itself."""
UPLOAD_FOLDER = re.compile("[0-9a-f]{64}")
"""Name of the folder of an upload: its SHA-256."""
UPLOAD_GONE = "the upload was removed, as it was not used; choose the file again"


class Session:
    """One open page in one browser. Results go to folders inside `folder`, where the uploads are too."""

    def __init__(self, folder: Path) -> None:
        self.stop_reason = ""
        """Empty while a job shall go on."""
        self.uploads: dict[Path, int] = {}
        """Uploads that the session's jobs took, with their inodes. A later identical upload has only another inode."""
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
        """Gives a job a new folder for its results; one job runs at a time. The folder stays until the next job, unless
        this job fails or is dropped."""
        if not self._busy.acquire(blocking=False):
            raise InputError("a file is being segmented already; stop it first or wait for it")
        try:
            self.stop_reason = ""
            self._remove_results()
            self._results = Path(tempfile.mkdtemp(prefix="session-", dir=self._folder))
            yield self._results
        except BaseException:
            self._remove_results()
            raise
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
            raise InputError(UPLOAD_GONE) from error
        self.uploads[path] = own.stat().st_ino
        return own

    def close(self) -> None:
        """Removes the results; a running job is stopped and removes its own results."""
        self._closed, self.stop_reason = True, "stopped"
        if not self.busy:
            self._remove_results()

    def _remove_results(self) -> None:
        if self._results is not None:
            shutil.rmtree(self._results, ignore_errors=True)
            self._results = None


def require_upload(spec: str, folder: Path) -> None:
    """Raises InputError for all but a regular file that was stored for an upload: FOLDER/SHA-256/NAME."""
    path = Path(spec)
    stored = path.parent.parent == folder and UPLOAD_FOLDER.fullmatch(path.parent.name)
    try:
        if stored and stat.S_ISREG(path.lstat().st_mode):
            return
    except FileNotFoundError as error:
        raise InputError(UPLOAD_GONE) from error
    except (OSError, ValueError):  # a name that no file can have
        pass
    raise InputError("this file was not uploaded here; choose it again")


class Sessions:
    """Sessions by Gradio's session hash."""

    def __init__(self, folder: Path) -> None:
        """`folder`: where the uploads are."""
        self.folder = folder
        self._open: dict[str, Session] = {}
        self._lock = threading.Lock()

    def __contains__(self, key: str) -> bool:
        return key in self._open

    def find(self, key: str) -> Session:
        """The session of an event; a new session if needed."""
        with self._lock:
            session = self._open.pop(key, None) or Session(self.folder)
            self._open[key] = session  # the last session is the most recently used
            idle = [name for name, other in self._open.items() if name != key and not other.busy]
            if len(self._open) > MAX_SESSIONS and idle:
                self._end(idle[0])
            return session

    def end(self, key: str) -> None:
        """Ends the session, if it exists.

        Its uploads are removed too, unless another session uses them or a visitor uploaded them again since.
        """
        with self._lock:
            self._end(key)

    def _end(self, key: str) -> None:
        session = self._open.pop(key, None)
        if session is None:
            return
        session.close()
        for path, inode in session.uploads.items():
            if not any(path in other.uploads for other in self._open.values()):
                with contextlib.suppress(OSError):
                    if path.stat().st_ino == inode:
                        path.unlink()
