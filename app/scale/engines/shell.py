"""What a worker is inside of an engine's process: its InputErrors are answers, told from its death by that. No torch
here."""

from collections.abc import Callable
from typing import Any

from core.errors import InputError

MakeWorker = Callable[[], Any]
"""Makes the worker in its own process; can be pickled."""


class WorkerProxy:
    """Around one worker."""

    def __init__(self, make: MakeWorker) -> None:
        self._worker = make()

    def call(self, method: str, arguments: tuple[Any, ...]) -> tuple[Any, str | None]:
        """(what the method returned, None), or (None, what an InputError said)."""
        try:
            return getattr(self._worker, method)(*arguments), None
        except InputError as error:
            return None, str(error)
