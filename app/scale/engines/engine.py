"""The protocol of an engine: slots with one worker each, which answers calls and is replaced if it dies."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from steadyseg.core.errors import InputError

MakeWorker = Callable[[], Any]
"""Makes the worker in its own process; must be picklable."""


@dataclass(frozen=True)
class Answer:
    """The result of a call."""

    slot: int
    value: Any = None
    refusal: str | None = None
    """The InputError that the call raised."""
    lost: str | None = None
    """How the worker ended, as in "ended by SIGKILL"; the slot has a new one."""


class Engine(Protocol):
    """Workers in processes of their own. After `close` none is left."""

    def most(self, memory_bytes: int) -> int:
        """Largest number of workers, given the memory of one worker at work."""

    def grow(self, slots: int) -> None:
        """Sets the number of slots; they are numbered from 0."""

    def call(self, slot: int, method: str, *arguments: Any) -> None:
        """Calls the slot's worker, which must have answered all earlier calls."""

    def wait(self, timeout_s: float) -> list[Answer]:
        """Answers that came meanwhile; empty after the time limit."""

    def replace(self, slot: int) -> None:
        """Ends the slot's worker, whatever it does, and starts a new worker; the ended worker's call is never
        answered."""

    def close(self) -> None: ...


class WorkerProxy:
    """A worker in its own process. It returns InputErrors as answers; any other error ends it."""

    def __init__(self, make: MakeWorker) -> None:
        self._worker = make()

    def call(self, method: str, arguments: tuple[Any, ...]) -> tuple[Any, str | None]:
        """(the method's result, None), or (None, the message of an InputError)."""
        try:
            return getattr(self._worker, method)(*arguments), None
        except InputError as error:
            return None, str(error)
