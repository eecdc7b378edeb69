"""Networks compiled in the background, so that a camera whose pictures change their size does not stop the others."""

import threading
from collections.abc import Callable, Hashable
from concurrent.futures import Future, ThreadPoolExecutor

from app.video.recent import MAX_KEPT, Recent
from core.system.machine import trim_memory
from export.run.networks import FrameNetwork


class StillCompiling(Exception):
    """Raised while the network for frames of a new size is being compiled."""


class BackgroundNetworks:
    """Compiled networks of a worker, the latest few of which are kept beside those that cameras use."""

    def __init__(self, size: int = MAX_KEPT) -> None:
        self._kept = Recent[FrameNetwork](size)
        self._lock = threading.Lock()
        self._pool = ThreadPoolExecutor(1, "compiler")
        self._latest: tuple[Hashable, Future[None]] | None = None

    def take_now(self, key: Hashable, make: Callable[[], FrameNetwork]) -> FrameNetwork:
        """The network of a key; compiles it in the calling thread if needed."""
        with self._lock:
            return self._kept.get(key, make)

    def take(self, key: Hashable, make: Callable[[], FrameNetwork]) -> FrameNetwork:
        """The network of a key. Raises StillCompiling while it is compiled, and the error with which compiling ended.
        Networks are compiled one at a time; callers ask again with their next frame.
        """
        with self._lock:
            if key in self._kept:
                return self._kept.get(key, make)
            if self._latest is None or self._latest[1].done():
                before, self._latest = self._latest, (key, self._pool.submit(self._make, key, make))
                if before is not None and before[0] == key:
                    before[1].result()
        raise StillCompiling("the network is being compiled for this size of frames")

    def _make(self, key: Hashable, make: Callable[[], FrameNetwork]) -> None:
        network = make()
        with self._lock:
            self._kept.get(key, lambda: network)
        trim_memory()  # of the one that made room
