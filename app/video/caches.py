"""Caches of the latest few compiled networks: a network takes seconds to compile and 40 MB to keep."""

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Generic, TypeVar

from steadyseg.core.system.machine import trim_memory
from steadyseg.export.run.networks import FrameNetwork

MAX_KEPT = 4
"""Number of values kept: folders of photographs and cameras switch between two or three sizes."""
T = TypeVar("T")


class Recent(OrderedDict[Hashable, T], Generic[T]):
    """A cache for one thread; beyond `MAX_KEPT` values, the least recently used value makes room for a new value."""

    def take(self, key: Hashable, make: Callable[[], T]) -> T:
        """The cached value of a key, or a new value."""
        if key not in self:
            self[key] = make()
        self.move_to_end(key)
        while len(self) > MAX_KEPT:
            self.popitem(last=False)
        return self[key]


class StillCompiling(Exception):
    """Raised while the network for frames of a new size is being compiled."""


class BackgroundNetworks:
    """Networks compiled in the background, so that a change of a camera's picture size does not stop the other cameras.
    Beside the networks in use, the latest few are kept."""

    def __init__(self) -> None:
        self._kept = Recent[FrameNetwork]()
        self._lock = threading.Lock()
        self._pool = ThreadPoolExecutor(1, "compiler")
        self._latest: tuple[Hashable, Future[None]] | None = None

    def take_now(self, key: Hashable, make: Callable[[], FrameNetwork]) -> FrameNetwork:
        """The network of a key; compiles it in the calling thread if needed."""
        with self._lock:
            return self._kept.take(key, make)

    def take(self, key: Hashable, make: Callable[[], FrameNetwork]) -> FrameNetwork:
        """The network of a key. Raises StillCompiling while it is compiled, or the error that ended the compiling.
        Networks are compiled one at a time; callers ask again with their next frame.
        """
        with self._lock:
            if key in self._kept:
                return self._kept.take(key, make)
            if self._latest is None or self._latest[1].done():
                before, self._latest = self._latest, (key, self._pool.submit(self._make, key, make))
                if before is not None and before[0] == key:
                    before[1].result()
        raise StillCompiling("the network is being compiled for this size of frames")

    def _make(self, key: Hashable, make: Callable[[], FrameNetwork]) -> None:
        network = make()
        with self._lock:
            self._kept.take(key, lambda: network)
        trim_memory()  # frees the memory of the network that made room
