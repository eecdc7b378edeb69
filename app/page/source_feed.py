"""A video or camera on the server's side as the Live tab watches it: at its own pace, the newest frame at any time."""

import threading
import time
from pathlib import Path

import numpy as np

from app.sources.frame_queue import FrameQueue, keep_newer
from app.sources.open_source import open_source
from app.sources.source import Source
from core.errors import InputError

PATIENCE_S = 10.0
"""A source that gives nothing for so long is said to be silent."""
BETWEEN_LOOPS_S = 10.0
"""Added to the time when a recording begins again, so that the temporal mean starts anew."""

TimedPicture = tuple[np.ndarray, float, float]
"""(picture, its time in seconds, `time.perf_counter()` at its arrival)."""


def display_name(spec: str) -> str:
    """What the page calls the source: no folders, no credentials."""
    if "://" in spec:
        from app.sources.url import redact

        return redact(spec)
    if spec.partition(":")[0] == "street":
        return "street"
    return f"camera {spec}" if spec.isdigit() else Path(spec).name


class SourceFeed:
    """Reads in a thread of its own; recordings are paced by their time stamps and begin again at their end.

    Raises InputError, one line without folders, where the source cannot be opened.
    """

    def __init__(self, spec: str) -> None:
        self._spec = spec
        self._queue = FrameQueue[TimedPicture](1, keep_newer)
        self._stopped = threading.Event()
        try:
            self._source: Source | None = open_source(spec)
        except InputError as error:
            raise InputError(str(error).replace(spec, display_name(spec))) from error
        self._reader = threading.Thread(target=self._run, name="feed", daemon=True)
        self._reader.start()

    def newest(self) -> TimedPicture:
        """Waits for a picture that was not given yet. Raises InputError where none comes."""
        picture = self._queue.take(PATIENCE_S)
        if picture is None:
            raise InputError(f"{display_name(self._spec)}: gives no picture")
        return picture

    def close(self) -> None:
        """Stops reading; the reader closes the source."""
        self._stopped.set()
        source = self._source
        if source is not None:
            source.stop()

    def _run(self) -> None:
        offset_s = 0.0
        try:
            while not self._stopped.is_set():
                with self._source or open_source(self._spec) as source:
                    self._source = source
                    offset_s = self._read(source, offset_s) + BETWEEN_LOOPS_S
                self._source = None
                if source.info.live:
                    raise InputError(f"{display_name(self._spec)}: has ended")
        except InputError as error:
            self._queue.finish(InputError(str(error).replace(self._spec, display_name(self._spec))))
        except Exception as error:
            self._queue.finish(InputError(f"{display_name(self._spec)}: reading failed ({type(error).__name__})"))

    def _read(self, source: Source, offset_s: float) -> float:
        """One pass; returns the time of its last frame."""
        began_s, time_s = time.perf_counter(), offset_s
        for frame in source:
            if not source.info.live:
                self._stopped.wait(max(0.0, began_s + frame.time_s - time.perf_counter()))
            if self._stopped.is_set():
                break
            time_s = offset_s + frame.time_s
            self._queue.put((frame.image, time_s, time.perf_counter()))
        return time_s
