"""Hands frames from a reader thread to the caller: files wait for the caller, live sources keep the newest frame."""

import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Generator, Iterator
from dataclasses import replace

from app.sources.source import Source
from core.frame import Frame

WAKE_UP_S = 0.5
"""A wait without a limit cannot be interrupted by Ctrl-C on Windows."""


def read_ahead(
    source: Source, capacity: int = 4, decode_ms: deque[float] | None = None
) -> Generator[Frame, None, None]:
    """The source's frames, read ahead by a thread of its own.

    A file's reader waits while `capacity` frames are unread, so none is lost. A live source's frame replaces the unread
    one, which is counted in `source.losses["dropped_newer_frame"]`: a late picture is worth less than a missing one.
    The reader's exception is raised here, as the same object, after the frames before it. Closing the generator, in
    whatever way, stops the reader and waits for it. `decode_ms` receives the time that each frame took to arrive, in
    milliseconds.
    """
    queue = FrameQueue(1 if source.info.live else capacity, source.info.live, source.losses)
    reader = threading.Thread(target=_read, args=(source, queue, decode_ms), name="frame-reader", daemon=True)
    reader.start()
    try:
        yield from queue.taken()
    finally:
        queue.stop()
        source.stop()
        reader.join()


def _read(source: Source, queue: "FrameQueue", decode_ms: deque[float] | None) -> None:
    try:
        began = time.perf_counter()
        for frame in source:
            if decode_ms is not None:
                decode_ms.append((time.perf_counter() - began) * 1e3)
            if not queue.put(frame):
                break
            began = time.perf_counter()
    except BaseException as error:
        queue.finish(error)
    else:
        queue.finish(None)


class FrameQueue:
    """A bounded place for frames between two threads."""

    def __init__(self, capacity: int, live: bool, losses: Counter[str]) -> None:
        self._capacity = capacity
        self._live = live
        self._losses = losses
        self._frames: deque[Frame] = deque()
        self._changed = threading.Condition()
        self._finished = self._stopped = False
        self._error: BaseException | None = None

    def put(self, frame: Frame) -> bool:
        """Called by the reader; False: nobody wants further frames."""
        with self._changed:
            if self._live:
                frame = self._in_place_of_the_oldest(frame)
            self._wait_until(lambda: self._stopped or len(self._frames) < self._capacity)
            self._frames.append(frame)
            self._changed.notify_all()
            return not self._stopped

    def taken(self) -> Iterator[Frame]:
        """Called by the consumer: frames in order until the reader has finished; then its exception, if any."""
        while True:
            with self._changed:
                self._wait_until(lambda: self._finished or bool(self._frames))
                if not self._frames:
                    break
                frame = self._frames.popleft()
                self._changed.notify_all()
            yield frame
        if self._error is not None:
            raise self._error

    def finish(self, error: BaseException | None) -> None:
        with self._changed:
            self._finished, self._error = True, error
            self._changed.notify_all()

    def stop(self) -> None:
        with self._changed:
            self._stopped = True
            self._changed.notify_all()

    def _in_place_of_the_oldest(self, frame: Frame) -> Frame:
        """A dropped frame hands its discontinuity on: its successor too has nothing to do with what was before."""
        while len(self._frames) >= self._capacity:
            dropped = self._frames.popleft()
            self._losses["dropped_newer_frame"] += 1
            frame = replace(frame, discontinuity=frame.discontinuity or dropped.discontinuity)
        return frame

    def _wait_until(self, condition: Callable[[], bool]) -> None:
        while not self._changed.wait_for(condition, timeout=WAKE_UP_S):
            pass
