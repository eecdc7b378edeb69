"""One camera as a thread: it reopens the source whenever it fails and keeps the newest frame for the worker."""

import threading
import time
from collections import Counter
from dataclasses import dataclass, replace

from steadyseg.app.scale.cameras.camera_file import Camera, redacted
from steadyseg.app.sources.ffmpeg import Pace
from steadyseg.app.sources.open_source import open_source
from steadyseg.app.sources.source import Source
from steadyseg.core.classes import ClassList
from steadyseg.core.errors import InputError
from steadyseg.core.frame import Frame

FIRST_DELAY_S, LONGEST_DELAY_S = 1.0, 60.0
"""Shortest and longest wait between attempts; each failure doubles the wait. A source that ends without failure is
opened at most once per shortest wait."""


@dataclass(frozen=True, eq=False)
class Arrived:
    """A frame and its time of arrival."""

    frame: Frame
    at_s: float
    """Time of `time.monotonic()`."""


class CameraStream:
    """The reader thread of a camera. It begins with `start` and ends with the process."""

    def __init__(self, camera: Camera, classes: ClassList, came: threading.Condition, delay_s: float = 0.0) -> None:
        """`came` is notified of every frame. `delay_s`: wait before the first attempt, so that cameras do not open
        all at once."""
        self.camera = camera
        self.counts: Counter[str] = Counter()
        """Counts of `opened`, `arrived` and `dropped` (due frames that a newer frame replaced before they were
        segmented)."""
        self.trouble = ""
        """The reason why there is no picture now, without secrets; empty while there is a picture."""
        self._classes, self._came, self._delay_s = classes, came, delay_s
        self._waiting: Arrived | None = None
        self._source: Source | None = None
        self.pace = Pace()
        self._thread = threading.Thread(target=self._run, name=f"camera-{camera.name}", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def reconnections(self) -> int:
        """Number of reconnections after an interruption."""
        source = self._source
        now = source.losses["reconnect"] if source is not None else 0
        return max(0, self.counts["opened"] - 1) + self.counts["reconnected"] + now

    def waiting_since(self) -> float | None:
        """Arrival time of the waiting frame, or None. Call it while holding `came`."""
        return None if self._waiting is None else self._waiting.at_s

    def take(self) -> Arrived:
        """Removes and returns the waiting frame. Call it while holding `came`, and only if a frame waits."""
        arrived, self._waiting = self._waiting, None
        assert arrived is not None
        return arrived

    def _run(self) -> None:
        time.sleep(self._delay_s)
        failures = 0
        while True:
            began_s, frames = time.monotonic(), self.counts["arrived"]
            try:
                self._read()
            except InputError as error:
                self.trouble = redacted(str(error))
            except Exception as error:  # any error of a decoder or driver concerns one camera alone
                self.trouble = redacted(f"{type(error).__name__}: {error}")
            if self._source is not None:
                self.counts["reconnected"] += self._source.losses["reconnect"]
                self._source = None
            failures = 0 if self.counts["arrived"] > frames else failures + 1
            delay_s = min(FIRST_DELAY_S * 2 ** min(failures, 10), LONGEST_DELAY_S)
            time.sleep(delay_s if self.trouble else max(0.0, began_s + FIRST_DELAY_S - time.monotonic()))

    def _read(self) -> None:
        """Reads frames until the stream ends for good, or a file is over."""
        with open_source(self.camera.source, classes=self._classes, pace=self.pace) as source:
            self._source = source
            self.counts["opened"] += 1
            self.trouble = ""
            self.pace.due_s = 0.0
            began_s, broke = time.monotonic(), False
            for frame in source:
                broke |= frame.discontinuity
                if not source.info.live:
                    time.sleep(min(max(0.0, began_s + frame.time_s - time.monotonic()), LONGEST_DELAY_S))
                now_s = time.monotonic()
                if now_s < self.pace.due_s:
                    continue
                self.pace.due_s = self._next_due(self.pace.due_s, now_s)
                self._offer(Arrived(replace(frame, discontinuity=broke), now_s))
                broke = False

    def _next_due(self, due_s: float, now_s: float) -> float:
        """Time of the next frame to segment: evenly spaced, without catching up on missed frames."""
        step_s = 1 / self.camera.sample_fps if self.camera.sample_fps else 0.0
        return due_s + step_s if now_s - due_s < step_s else now_s + step_s

    def _offer(self, arrived: Arrived) -> None:
        with self._came:
            self.counts["arrived"] += 1
            if self._waiting is not None:
                self.counts["dropped"] += 1
                broke = arrived.frame.discontinuity or self._waiting.frame.discontinuity
                arrived = replace(arrived, frame=replace(arrived.frame, discontinuity=broke))
            self._waiting = arrived
            self._came.notify()
