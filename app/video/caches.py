"""A cache of the latest few compiled networks: a network takes seconds to compile and 40 MB to keep."""

from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

MAX_KEPT = 4
"""Number of values kept: folders of photographs switch between two or three sizes."""
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
