"""A video or camera on the server's side for the Live tab: one reader for all visitors, who get the newest frame."""

import math
import threading
import time
from pathlib import Path

import numpy as np

from steadyseg.app.sources.image_folder import IMAGE_SUFFIXES, VIDEO_SUFFIXES
from steadyseg.app.sources.open_source import is_path, is_street, open_source
from steadyseg.app.sources.source import Source
from steadyseg.app.sources.url import redact
from steadyseg.core.errors import InputError

PATIENCE_S = 10.0
"""A source is reported as silent after this many seconds without a frame. A recording gives a picture that stands for
longer again, at half this time."""
BETWEEN_LOOPS_S = 10.0
"""Time added when a recording starts again, so that the temporal mean restarts."""
MIN_PASS_S = 0.5
"""Shortest time of a pass over a recording, which is thus opened at most twice a second, not 2,300 times. A photograph
repeats after this time, so that controls take effect."""
FIRST_WAIT_S, LONGEST_WAIT_S = 1.0, 60.0
"""Waits after a failure; each further failure doubles the wait. Live sources have tried to reconnect for 15 s before
they fail."""

TimedPicture = tuple[np.ndarray, float, float]
"""(picture, its time in seconds, `time.perf_counter()` at its arrival)."""


def display_name(spec: str) -> str:
    """The name of the source on the page, without folders and credentials."""
    if "://" in spec:
        return redact(spec)
    if is_street(spec):
        return "street"
    return f"camera {spec}" if spec.isdigit() else Path(spec).name


def is_source(text: str) -> bool:
    """True for what cannot be a model: a camera number, an address, a street, and an existing video or image."""
    path = Path(text)
    return not is_path(text) or (path.suffix.lower() in (*VIDEO_SUFFIXES, *IMAGE_SUFFIXES) and path.is_file())


def without_folder(text: str, spec: str) -> str:
    """An error message for visitors, without folders of this machine."""
    path = Path(spec)
    return text.replace(str(path), path.name) if len(path.parts) > 1 and "://" not in spec else text


class Subscription:
    """One visitor's view of a feed."""

    def __init__(self, feed: "SourceFeed") -> None:
        self._feed, self._seen = feed, 0
        self.given = 0
        """Pictures that the source gave since the visitor's first, that one included."""

    def newest(self) -> TimedPicture:
        """Waits for a picture that is new to this visitor. Raises InputError with the reason if none comes."""
        before = self._seen
        self._seen, picture = self._feed.newest(before)
        self.given += self._seen - before if self.given else 1
        return picture

    def close(self) -> None:
        """Ends the visitor's view."""
        self._feed.leave()


class SourceFeed:
    """A source that opens with the first visitor and closes after the last; a thread reads it at its own pace.

    Recordings repeat. A failure is reported to all visitors and tried again after growing waits. Pictures are shared:
    nobody may write into them.
    """

    def __init__(self, spec: str) -> None:
        self._spec, self._name = spec, display_name(spec)
        self._changed = threading.Condition()
        self._watchers = 0
        self._reader: threading.Thread | None = None
        self._left = threading.Event()
        self._source: Source | None = None
        self._number, self._time_s = 0, 0.0
        self._picture: TimedPicture | None = None
        self._trouble: str | None = None

    def subscribe(self) -> Subscription:
        """Adds a visitor, without waiting for a picture."""
        with self._changed:
            self._watchers += 1
            if self._reader is None:
                self._reader = threading.Thread(target=self._run, name="feed", daemon=False)
                self._reader.start()
        return Subscription(self)

    def leave(self) -> None:
        """Removes a visitor; after the last one the reader closes the source and ends."""
        with self._changed:
            self._watchers -= 1
            if not self._watchers:
                self._left.set()
                if self._source is not None:
                    self._source.stop()

    def newest(self, seen: int) -> tuple[int, TimedPicture]:
        """(number of the newest picture, the picture) once the number is beyond `seen`. Raises InputError if no picture
        comes."""
        with self._changed:
            self._changed.wait_for(lambda: self._trouble is not None or self._number > seen, PATIENCE_S)
            if self._trouble is not None:
                raise InputError(self._trouble)
            if self._picture is None or self._number <= seen:
                raise InputError(f"{self._name}: gives no picture")
            return self._number, self._picture

    def _run(self) -> None:
        wait_s = FIRST_WAIT_S
        while self._goes_on():
            before = self._number
            reason = self._play()
            self._time_s += BETWEEN_LOOPS_S
            if self._number > before:
                wait_s = FIRST_WAIT_S
            if reason is not None:
                self._tell(f"{reason} (next try within {wait_s:g} s)")
                self._left.wait(wait_s)
                wait_s = min(2 * wait_s, LONGEST_WAIT_S)

    def _goes_on(self) -> bool:
        """True while somebody watches. Otherwise marks this reader as ended: the next visitor starts another."""
        with self._changed:
            self._left.clear()
            if not self._watchers:
                self._reader = self._picture = self._trouble = None
                self._number = 0
            return self._watchers > 0

    def _play(self) -> str | None:
        """Plays the source from beginning to end; returns the reason if it failed, without folders."""
        try:
            with open_source(self._spec) as source:
                self._show(source)
        except InputError as error:
            return without_folder(str(error), self._spec)
        except Exception as error:
            return f"{self._name}: reading failed ({type(error).__name__})"
        finally:
            with self._changed:
                self._source = None
        return None

    def _show(self, source: Source) -> None:
        began_s, offset_s, before = time.perf_counter(), self._time_s, self._number
        with self._changed:
            self._source = source
            if self._left.is_set():
                return
        for frame in source:
            if not source.info.live:
                self._stand(began_s + frame.time_s, PATIENCE_S / 2)
            if self._left.is_set():
                return
            self._time_s = offset_s + frame.time_s
            self._give((frame.image, self._time_s, time.perf_counter()))
        if self._left.is_set():  # a live source that was stopped
            return
        if source.info.live or self._picture is None or self._number == before:
            raise InputError(f"{self._name}: {'has ended' if source.info.live else 'gives no picture'}")
        if self._number - before == 1:  # a photograph is decoded once
            self._stand(math.inf, MIN_PASS_S)
        self._left.wait(max(1 / source.info.fps, began_s + MIN_PASS_S - time.perf_counter()))

    def _stand(self, until_s: float, step_s: float) -> None:
        """Waits until a time of `time.perf_counter()`, and gives the picture again after each step."""
        while (left_s := until_s - time.perf_counter()) > 0 and not self._left.wait(min(left_s, step_s)):
            if left_s > step_s and self._picture is not None:
                self._time_s += step_s
                self._give((self._picture[0], self._time_s, time.perf_counter()))

    def _give(self, picture: TimedPicture) -> None:
        with self._changed:
            self._number, self._picture, self._trouble = self._number + 1, picture, None
            self._changed.notify_all()

    def _tell(self, trouble: str) -> None:
        with self._changed:
            self._trouble = trouble
            self._changed.notify_all()
