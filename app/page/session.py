"""What one visitor of the File tab owns: the upload and the results of the last job, and their end."""

import shutil
import tempfile
import threading
from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from core.errors import InputError

MOST_SESSIONS = 16
"""Each may hold a video of its own; one more visitor ends the session unused for longest."""


class Session:
    """One open page in one browser. Results go to folders inside `parent`."""

    def __init__(self, parent: Path) -> None:
        self.stop_asked = False
        self._parent = parent
        self._results: Path | None = None
        self._uploads: set[Path] = set()
        self._closed = False
        self._busy = threading.Lock()

    @contextmanager
    def job(self) -> Iterator[Path]:
        """A fresh folder for the results of one job; those of the job before are removed. One job at a time."""
        if not self._busy.acquire(blocking=False):
            raise InputError("a file is being segmented already; stop it first or wait for it")
        try:
            self.stop_asked = False
            self._remove_results()
            self._parent.mkdir(parents=True, exist_ok=True)
            self._results = Path(tempfile.mkdtemp(prefix="session-", dir=self._parent))
            yield self._results
        finally:
            self._busy.release()
            if self._closed:
                self._remove_everything()

    def keep(self, spec: str) -> None:
        """This upload belongs to the session and goes with it; what lies elsewhere is left alone."""
        path = Path(spec)
        if path.is_absolute() and self._parent in path.parents:
            self._uploads.add(path)

    def close(self) -> None:
        """Removes the results and uploads; a job that is still running is stopped and removes its own."""
        self._closed = self.stop_asked = True
        if not self._busy.locked():
            self._remove_everything()

    def _remove_everything(self) -> None:
        self._remove_results()
        for path in self._uploads:
            path.unlink(missing_ok=True)

    def _remove_results(self) -> None:
        if self._results is not None:
            shutil.rmtree(self._results, ignore_errors=True)


class Sessions:
    """Sessions by Gradio's session hash, made when first asked for.

    Gradio keeps a `gr.State` for an hour after its page is closed (STATE_TTL_WHEN_CLOSED); these end with the page.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._open: OrderedDict[str, Session] = OrderedDict()
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._open)

    def get(self, key: str) -> Session:
        """The session of that hash."""
        with self._lock:
            session = self._open.setdefault(key, Session(self._folder))
            self._open.move_to_end(key)
            surplus = [self._open.popitem(last=False)[1] for _ in range(len(self._open) - MOST_SESSIONS)]
        for old in surplus:
            old.close()
        return session

    def close(self, key: str) -> None:
        """Ends that session, if there is one."""
        with self._lock:
            session = self._open.pop(key, None)
        if session is not None:
            session.close()
