"""Reading of a source in a thread of its own: files wait for the caller, live sources keep the newest frame."""

import math
import threading
import time
from collections import deque
from collections.abc import Callable, Generator, Iterator
from dataclasses import replace
from types import TracebackType
from typing import Generic, TypeVar

from steadyseg.app.sources.source import Source
from steadyseg.core.frame import Frame

T = TypeVar("T")
WAKE_UP_S = 0.5
"""Time limit of a wait: without a limit, Ctrl-C cannot interrupt the wait on Windows."""


class FrameQueue(Generic[T]):
    """A queue for one writer and one reader; items are never None.

    Without `replace`, `put` waits while the queue is full, so nothing is lost. With it, `put` never waits: the oldest
    item is dropped, and `replace(dropped, newer)` returns the item that enters the queue.
    """

    def __init__(self, capacity: int, replace: Callable[[T, T], T] | None = None) -> None:
        self._capacity, self._replace = capacity, replace
        self._items: deque[T] = deque()
        self._changed = threading.Condition()
        self._ended = False
        self._error: BaseException | None = None
        self._traceback: TracebackType | None = None

    def put(self, item: T) -> bool:
        """Adds an item. Returns False if the queue was stopped and did not take it."""
        with self._changed:
            if self._replace is None:
                self._wait(lambda: self._ended or len(self._items) < self._capacity, math.inf)
            if self._ended:
                return False
            while self._replace is not None and len(self._items) >= self._capacity:
                item = self._replace(self._items.popleft(), item)
            self._items.append(item)
            self._changed.notify_all()
        return True

    def take(self, timeout_s: float = math.inf) -> T | None:
        """The oldest item; None if no item came in time or will come. Raises the error that ended the writer."""
        with self._changed:
            self._wait(lambda: self._ended or bool(self._items), timeout_s)
            if self._items:
                item = self._items.popleft()
                self._changed.notify_all()
                return item
            if self._error is not None:
                raise self._error.with_traceback(self._traceback)  # otherwise the traceback would grow with each take
        return None

    def __iter__(self) -> Iterator[T]:
        """Items until the writer has finished."""
        while (item := self.take()) is not None:
            yield item

    def pause(self, timeout_s: float) -> None:
        """Waits, at most until the queue has ended."""
        with self._changed:
            self._wait(lambda: self._ended, timeout_s)

    def finish(self, error: BaseException | None = None) -> None:
        """Marks the end of the items, with the writer's error if there was one. Called by the writer."""
        with self._changed:
            self._ended, self._error = True, error
            self._traceback = None if error is None else error.__traceback__
            self._changed.notify_all()

    def stop(self) -> list[T]:
        """Ends the queue for both sides at once; returns the items that were not taken."""
        with self._changed:
            self._ended = True
            left = list(self._items)
            self._items.clear()
            self._changed.notify_all()
        return left

    def _wait(self, condition: Callable[[], bool], timeout_s: float) -> None:
        while not self._changed.wait_for(condition, timeout=min(timeout_s, WAKE_UP_S)):
            timeout_s -= WAKE_UP_S
            if timeout_s <= 0:
                break


def read_ahead(
    source: Source, capacity: int = 4, decode_ms: deque[float] | None = None, live: bool = False
) -> Generator[Frame, None, None]:
    """Yields the source's frames, which a thread reads ahead.

    A file's reader waits while `capacity` frames are unread, so none is lost. A live source's frame replaces the unread
    frame, which is counted in `source.losses["dropped_newer_frame"]`: a late picture is worth less than a missing
    picture. The reader's exception is raised here, as the same object, after the frames before it. Closing the
    generator, in whatever way, stops the reader and waits for it. `decode_ms` receives the time that each frame took to
    arrive, in milliseconds. `live` plays a recording at its own times, like a live source.
    """

    def drop(dropped: Frame, newer: Frame) -> Frame:
        """The newer frame; it becomes a discontinuity if the dropped frame was one."""
        source.losses["dropped_newer_frame"] += 1
        return replace(newer, discontinuity=newer.discontinuity or dropped.discontinuity)

    queue = FrameQueue(1, drop) if live or source.info.live else FrameQueue[Frame](capacity)
    paced = live and not source.info.live
    reader = threading.Thread(target=_read, args=(source, queue, decode_ms, paced), name="frame-reader", daemon=True)
    reader.start()
    try:
        yield from queue
    finally:
        queue.stop()
        source.stop()
        reader.join()


def _read(source: Source, queue: FrameQueue[Frame], decode_ms: deque[float] | None, paced: bool) -> None:
    try:
        opened = began = time.perf_counter()
        for frame in source:
            if decode_ms is not None:
                decode_ms.append((time.perf_counter() - began) * 1e3)
            if paced:
                queue.pause(opened + frame.time_s - time.perf_counter())
            if not queue.put(frame):
                break
            began = time.perf_counter()
    except BaseException as error:
        queue.finish(error)
    else:
        queue.finish()
