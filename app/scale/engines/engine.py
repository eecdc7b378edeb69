"""What a driver sees of an engine: slots with a worker each, which is called and answers, or dies and is replaced."""

from dataclasses import dataclass
from typing import Any, Protocol


@dataclass(frozen=True)
class Answer:
    """What came of a call."""

    slot: int
    value: Any = None
    refusal: str | None = None
    """The InputError that the call raised."""
    lost: str | None = None
    """Why the worker is gone, in words; the slot has a new one."""


class Engine(Protocol):
    """Workers in processes of their own. Close it, and none is left."""

    def most(self, memory_bytes: int) -> int:
        """How many workers there can be, one of which is at work and has taken so much."""
        ...

    def grow(self, slots: int) -> None:
        """So many slots from now on, 0 to slots - 1."""
        ...

    def call(self, slot: int, method: str, *arguments: Any) -> None:
        """Calls the slot's worker, which has answered all earlier calls."""
        ...

    def wait(self, timeout_s: float) -> list[Answer]:
        """What was answered meanwhile; empty after the time."""
        ...

    def replace(self, slot: int) -> None:
        """Ends the slot's worker, whatever it is at, and starts another; its call is never answered."""
        ...

    def close(self) -> None: ...
