"""The worker inside an engine's process: its InputErrors are answers, which tells them from its death. No torch
here."""

from collections.abc import Callable
from typing import Any

from core.errors import InputError

MakeWorker = Callable[[], Any]
"""Makes the worker in its own process; must be picklable."""


class WorkerProxy:
    """A wrapper of one worker that returns its InputErrors."""

    def __init__(self, make: MakeWorker) -> None:
        self._worker = make()

    def call(self, method: str, arguments: tuple[Any, ...]) -> tuple[Any, str | None]:
        """(the method's result, None), or (None, the message of an InputError)."""
        try:
            return getattr(self._worker, method)(*arguments), None
        except InputError as error:
            return None, str(error)
