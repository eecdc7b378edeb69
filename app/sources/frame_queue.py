"""A bounded queue between two threads; a full queue makes its writer wait or drops its oldest item."""

import math
import threading
from collections import deque
from collections.abc import Callable, Iterator
from types import TracebackType
from typing import Generic, TypeVar

T = TypeVar("T")
WAKE_UP_S = 0.5
"""Time limit of a wait: one without a limit cannot be interrupted by Ctrl-C on Windows."""


def keep_newer(dropped: T, newer: T) -> T:
    """The newer item: the `replace` function of a queue that drops items without a trace."""
    return newer


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
        """The oldest item; None if nothing came in time or nothing will come. Raises the error that the writer
        finished with."""
        with self._changed:
            self._wait(lambda: self._ended or bool(self._items), timeout_s)
            if self._items:
                item = self._items.popleft()
                self._changed.notify_all()
                return item
            if self._error is not None:
                raise self._error.with_traceback(self._traceback)  # else it would grow with each further take
        return None

    def __iter__(self) -> Iterator[T]:
        """Items until the writer has finished."""
        while (item := self.take()) is not None:
            yield item

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
