"""From the page's method settings to a segmenter; compiled networks are handed on from one visitor to the next."""

import threading
from collections import defaultdict
from collections.abc import Callable, Collection, Hashable
from types import TracebackType
from typing import Self

from app.open_model import open_segmenter
from app.page.settings import MethodSettings, model_meta
from core.checkpoint import CheckpointMeta
from core.frame import Frame, Maps
from export.networks import FrameNetwork

MOST_IDLE = 2
"""Compiled networks of one kind that wait for the next visitor (8 to 20 MB each); compiling one takes seconds."""


class NetworkPool:
    """Compiled networks that nobody uses at the moment; one network serves one visitor at a time."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._idle: defaultdict[Hashable, list[FrameNetwork]] = defaultdict(list)

    def take(self, key: Hashable, make: Callable[[], FrameNetwork]) -> FrameNetwork:
        """An idle network of that kind, or a new one."""
        with self._lock:
            if self._idle[key]:
                return self._idle[key].pop()
        return make()

    def give_back(self, key: Hashable, network: FrameNetwork) -> None:
        """The caller uses it no longer; it is kept if not enough of its kind are."""
        with self._lock:
            if len(self._idle[key]) < MOST_IDLE:
                self._idle[key].append(network)


class Lease:
    """The networks that one visitor uses, one of each kind: its methods run one after the other and may share them."""

    def __init__(self, pool: NetworkPool) -> None:
        self._pool = pool
        self._taken: dict[Hashable, FrameNetwork] = {}

    def take(self, key: Hashable, make: Callable[[], FrameNetwork]) -> FrameNetwork:
        """The visitor's network of that kind."""
        if key not in self._taken:
            self._taken[key] = self._pool.take(key, make)
        return self._taken[key]

    def keep_only(self, keys: Collection[Hashable]) -> None:
        """Gives all others back."""
        for key in self._taken.keys() - keys:
            self._pool.give_back(key, self._taken.pop(key))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.keep_only(())


class OpenMethod:
    """One visitor's segmenter for one method. Raises InputError where the model cannot do it."""

    def __init__(self, settings: MethodSettings, lease: Lease) -> None:
        self.settings = settings
        self.meta: CheckpointMeta = model_meta(settings.model)
        self.keys: set[Hashable] = set()
        """The kinds of networks that it uses."""
        self._lease = lease
        self.segmenter = open_segmenter(settings.model, settings.options, take=self._take)

    def step(self, frame: Frame, keep_probs: bool) -> Maps:
        """Segments one frame; probabilities cost a copy of a few MB and come only where something needs them."""
        self.segmenter.keep_probs = keep_probs
        return self.segmenter.step(frame)

    def _take(self, key: Hashable, make: Callable[[], FrameNetwork]) -> FrameNetwork:
        self.keys.add(key)
        return self._lease.take(key, make)
