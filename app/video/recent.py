"""A cache of the values that were used last, for compiled networks: one takes seconds to make and 40 MB to keep."""

from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

MAX_KEPT = 4
"""Values kept: folders of photographs and cameras switch between two or three sizes."""
T = TypeVar("T")


class Recent(Generic[T]):
    """A cache for one thread, in which the least recently used value makes room for a new one."""

    def __init__(self, size: int = MAX_KEPT) -> None:
        self._size = size
        self._values: OrderedDict[Hashable, T] = OrderedDict()

    def get(self, key: Hashable, make: Callable[[], T]) -> T:
        """The cached value of a key, or a new one."""
        if key not in self._values:
            self._values[key] = make()
        self._values.move_to_end(key)
        while len(self._values) > self._size:
            self._values.popitem(last=False)
        return self._values[key]

    def __contains__(self, key: Hashable) -> bool:
        return key in self._values

    def drop(self, key: Hashable) -> None:
        """Forgets the value of a key."""
        self._values.pop(key, None)

    def clear(self) -> None:
        """Forgets all values."""
        self._values.clear()
