"""Segmenters for the page's method settings; each visitor's compiled networks pass to the next visitor."""

import threading
from collections import deque
from collections.abc import Callable, Hashable
from contextlib import AbstractContextManager
from functools import partial

from steadyseg.app.page.parts.settings import MethodSettings, model_meta, read_graph
from steadyseg.core.frame import Frame, Maps
from steadyseg.core.method import MethodOptions
from steadyseg.core.model.checkpoint import CheckpointMeta
from steadyseg.core.options import Every
from steadyseg.runtime.every import default_every
from steadyseg.runtime.networks import FrameNetwork
from steadyseg.runtime.open_model import is_graph, open_segmenter

MAX_IDLE = 4
"""Number of compiled networks that wait for visitors (40 MB each at 360 pixels of height); compiling takes seconds."""


class NetworkPool:
    """A pool of idle compiled networks; when it is full, the least recently used network makes room for a newer
    network.

    A network in use is not in the pool. A visitor or file job uses at most two networks.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._idle: deque[tuple[Hashable, FrameNetwork]] = deque(maxlen=MAX_IDLE)

    def take(self, key: Hashable, make: Callable[[], FrameNetwork]) -> FrameNetwork:
        """An idle network of this kind, or a new network."""
        with self._lock:
            for entry in reversed(self._idle):
                if entry[0] == key:
                    self._idle.remove(entry)
                    return entry[1]
        return make()

    def release(self, key: Hashable, network: FrameNetwork) -> None:
        """Puts back a network that the caller no longer uses."""
        with self._lock:
            self._idle.append((key, network))


class Lease(AbstractContextManager["Lease"]):
    """The networks of one visitor, whose methods run one after the other and share a network of the same kind."""

    def __init__(self, pool: NetworkPool) -> None:
        self._pool = pool
        self._taken: dict[Hashable, FrameNetwork] = {}
        self._uses: dict[Hashable, Hashable] = {}

    def take(self, user: Hashable, key: Hashable, make: Callable[[], FrameNetwork]) -> FrameNetwork:
        """A network of this kind for one of the visitor's methods, `user`; its previous network is released."""
        if key not in self._taken:
            self._taken[key] = self._pool.take(key, make)
        self._uses[user] = key
        self._release_unused()
        return self._taken[key]

    def release(self, user: Hashable) -> None:
        """Releases the network of a method that has ended."""
        self._uses.pop(user, None)
        self._release_unused()

    def _release_unused(self) -> None:
        for key in self._taken.keys() - self._uses.values():
            self._pool.release(key, self._taken.pop(key))

    def __exit__(self, *_: object) -> None:
        self._uses.clear()
        self._release_unused()


class OpenMethod:
    """One visitor's segmenter for one method. Raises InputError for a method that the model does not support."""

    def __init__(self, settings: MethodSettings, lease: Lease, every: Every | None = None, live: bool = False) -> None:
        """`live`: no frame waits for the network, if `every` does not say when it runs."""
        self.settings = settings
        self.meta: CheckpointMeta = model_meta(settings.model)
        self._lease = lease
        self._single = is_graph(settings.model) and settings.options.mode == "dnn"
        options = MethodOptions() if self._single else settings.options
        # A bound method would make a reference cycle, which would keep the network until a garbage collection.
        method = options.resolve(self.meta) if not is_graph(settings.model) else read_graph(settings.model).method
        every = every or default_every(live and not self._single, method)
        self.segmenter = open_segmenter(settings.model, options, every=every, take=partial(lease.take, settings))

    def step(self, frame: Frame, keep_probs: bool) -> Maps:
        """Segments one frame; with `keep_probs` the maps have the probabilities, which costs a copy of a few MB."""
        self.segmenter.keep_probs = keep_probs
        if self._single:  # forgets the earlier frames: a graph file has no method for single frames
            self.segmenter.reset()
        return self.segmenter.step(frame)

    def close(self) -> None:
        """Returns the network to the pool."""
        self.segmenter.wait()
        self._lease.release(self.settings)
