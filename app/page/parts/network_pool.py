"""From the page's method settings to a segmenter; compiled networks are handed on from one visitor to the next."""

import threading
from collections import deque
from collections.abc import Callable, Hashable
from functools import partial
from types import TracebackType
from typing import Self

from app.open_model import open_segmenter
from app.page.parts.settings import MethodSettings, model_meta
from core.frame import Frame, Maps
from core.model.checkpoint import CheckpointMeta
from export.run.networks import FrameNetwork

MAX_IDLE = 4
"""Compiled networks that wait for the next visitor (40 MB each at 360 pixels of height); making one takes seconds."""


class NetworkPool:
    """Compiled networks that nobody uses at the moment, the least recently used one given up for a newer one.

    One network serves one visitor at a time, so there are never more than these and two for each visitor or job.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._idle: deque[tuple[Hashable, FrameNetwork]] = deque(maxlen=MAX_IDLE)

    def take(self, key: Hashable, make: Callable[[], FrameNetwork]) -> FrameNetwork:
        """An idle network of that kind, or a new one."""
        with self._lock:
            for entry in reversed(self._idle):
                if entry[0] == key:
                    self._idle.remove(entry)
                    return entry[1]
        return make()

    def give_back(self, key: Hashable, network: FrameNetwork) -> None:
        """The caller uses it no longer."""
        with self._lock:
            self._idle.append((key, network))


class Lease:
    """The networks that one visitor uses: its methods run one after the other, and share one of the same kind."""

    def __init__(self, pool: NetworkPool) -> None:
        self._pool = pool
        self._taken: dict[Hashable, FrameNetwork] = {}
        self._uses: dict[Hashable, Hashable] = {}

    def take(self, user: Hashable, key: Hashable, make: Callable[[], FrameNetwork]) -> FrameNetwork:
        """A network of that kind for one of the visitor's methods, which uses no other from now on."""
        if key not in self._taken:
            self._taken[key] = self._pool.take(key, make)
        self._uses[user] = key
        self._give_back_unused()
        return self._taken[key]

    def release(self, user: Hashable) -> None:
        """This method has ended."""
        self._uses.pop(user, None)
        self._give_back_unused()

    def _give_back_unused(self) -> None:
        for key in self._taken.keys() - self._uses.values():
            self._pool.give_back(key, self._taken.pop(key))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._uses.clear()
        self._give_back_unused()


class OpenMethod:
    """One visitor's segmenter for one method. Raises InputError where the model cannot do it."""

    def __init__(self, settings: MethodSettings, lease: Lease) -> None:
        self.settings = settings
        self.meta: CheckpointMeta = model_meta(settings.model)
        self._lease = lease
        # A bound method instead would make a circle, and what it holds would wait for the garbage collector.
        self.segmenter = open_segmenter(settings.model, settings.options, take=partial(lease.take, settings))

    def step(self, frame: Frame, keep_probs: bool) -> Maps:
        """Segments one frame; probabilities cost a copy of a few MB and come only where something needs them."""
        self.segmenter.keep_probs = keep_probs
        return self.segmenter.step(frame)

    def close(self) -> None:
        """Gives its network back."""
        self._lease.release(self.settings)
