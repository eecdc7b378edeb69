"""The visitors of the page: how many there may be, their jobs, uploads and results, and their end."""

import contextlib
import re
import shutil
import stat
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from steadyseg.app.page.visitors.disk import UPLOAD_FOLDER
from steadyseg.core.errors import InputError

MAX_SESSIONS = 64
"""Pages that are open at once. Gradio keeps 70 kB for each."""
MAX_CONNECTIONS = 8
"""Open answers to one page, which has two: the heartbeat, and the messages of its events."""
IDLE_S = 600
"""Seconds after which a session without a connection ends: its page was closed or never was one."""
RESULTS_S = 3600
"""Seconds after which an open page's results are removed if nothing was asked for since."""
UPLOAD_GONE = "the upload was removed, as it was not used; choose the file again"
KEY = re.compile(r"[\w-]{1,40}", re.ASCII)
"""A session's hash: Gradio's script draws 11 letters and figures, its Python client a UUID."""


class Session:
    """One open page in one browser. Results go to folders inside `folder`, where the uploads are too."""

    def __init__(self, folder: Path) -> None:
        self.stop_reason = ""
        """Empty while a job shall go on."""
        self.uploads: dict[Path, int] = {}
        """The uploads that its jobs took, with their inodes: an identical upload that came later is another file."""
        self.connections = self.listeners = 0
        """Open answers to this page, and those among them that carry the messages of its events."""
        self.is_page = False
        """True once it had a heartbeat, as a browser's page has: without one it was closed."""
        self.used_s = self.unheard_s = time.monotonic()
        """Times of the last request, and since when nobody listens to its events."""
        self._folder = folder
        self._results: Path | None = None
        self._closed = False
        self._busy = threading.Lock()

    @property
    def busy(self) -> bool:
        """True while a job runs."""
        return self._busy.locked()

    @property
    def idle_s(self) -> float:
        """Seconds since the last request; 0 during a job."""
        return 0.0 if self.busy else time.monotonic() - self.used_s

    @property
    def disposable(self) -> bool:
        """True if a newcomer may have this place: no page is open, no job runs, and no file is kept."""
        return not (self.connections or self.busy or self.uploads or self._results)

    @contextlib.contextmanager
    def job(self) -> Iterator[Path]:
        """A new folder for the results of one job at a time, kept until the next one unless it fails or is dropped."""
        if not self._busy.acquire(blocking=False):
            raise InputError("a file is being segmented already; stop it first or wait for it")
        try:
            self.stop_reason = ""
            self.remove_results()
            self._results = Path(tempfile.mkdtemp(prefix="session-", dir=self._folder))
            yield self._results
        except BaseException:
            self.remove_results()
            raise
        finally:
            self.used_s = time.monotonic()
            self._busy.release()
            if self._closed:
                self.remove_results()

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
        """Removes the results; a job that is still running is stopped and removes its own."""
        self._closed, self.stop_reason = True, "stopped"
        if not self.busy:
            self.remove_results()

    def remove_results(self) -> None:
        """Removes the results of the last job."""
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
    """Sessions by Gradio's session hash. They begin and end in the event loop alone.

    Gradio would keep the values of 10,000 hashes, made-up ones too, for an hour after their page is closed.
    """

    def __init__(self, folder: Path, forget: Callable[[str], None] = lambda key: None) -> None:
        """`forget(hash)` is called at the end of each session."""
        self._folder, self._forget = folder, forget
        self._open: dict[str, Session] = {}

    def __len__(self) -> int:
        return len(self._open)

    def admit(self, key: str) -> Session:
        """The session of that hash, made if there is room for it. Raises InputError if all places are taken."""
        session = self._open.get(key)
        if session is None:
            if not KEY.fullmatch(key):
                raise InputError("the page cannot read that; reload it")
            if len(self._open) >= MAX_SESSIONS:
                idle = [name for name, other in self._open.items() if other.disposable]
                if not idle:
                    raise InputError(f"this page has {MAX_SESSIONS} visitors already; try again in a few minutes")
                self.end(min(idle, key=lambda name: self._open[name].used_s))
            session = self._open[key] = Session(self._folder)
        session.used_s = time.monotonic()
        return session

    @contextlib.contextmanager
    def connection(self, key: str, listens: bool) -> Iterator[None]:
        """A context for as long as an answer is open to that session. `listens`: True if the answer carries messages of
        events, False for a heartbeat."""
        session = self.admit(key)
        if session.connections >= MAX_CONNECTIONS:
            raise InputError("this page is connected too often; reload it")
        session.connections += 1
        session.listeners += listens
        session.is_page |= not listens
        try:
            yield
        finally:
            session.connections -= 1
            session.listeners -= listens
            session.used_s = session.unheard_s = time.monotonic()
            if session.is_page and not session.connections:
                self.end(key)

    def find(self, key: str) -> Session:
        """The session of an event. Raises InputError if it has ended."""
        session = self._open.get(key)
        if session is None:
            raise InputError("this page was closed; reload it")
        return session

    def __contains__(self, key: str) -> bool:
        return key in self._open

    def end(self, key: str) -> None:
        """Ends that session, if there is one.

        Its uploads are removed too, but for those that another session uses or a visitor uploaded again since.
        """
        session = self._open.pop(key, None)
        if session is None:
            return
        session.close()
        for path, inode in session.uploads.items():
            if not any(path in other.uploads for other in self._open.values()):
                with contextlib.suppress(OSError):
                    if path.stat().st_ino == inode:
                        path.unlink()
        self._forget(key)

    def expire(self) -> None:
        """Ends sessions that nobody is connected to any more, and removes results that nobody asks for."""
        for key, session in list(self._open.items()):
            if not session.connections and session.idle_s > IDLE_S:
                self.end(key)
            elif session.idle_s > RESULTS_S:
                session.remove_results()
