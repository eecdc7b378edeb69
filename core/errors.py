"""The one error that means "the input is at fault": it becomes one line on stderr and exit code 2."""

from pathlib import Path


class InputError(ValueError):
    """Bad input from outside; the message says what was given, what was expected and what to do."""


class CheckFailed(RuntimeError):
    """The work ran and its own check failed (a non-finite loss, a proof that does not hold): exit code 1."""


def refuse_existing(path: Path, overwrite: bool) -> None:
    """InputError where something is at `path` that may not be replaced."""
    if path.exists() and not overwrite:
        raise InputError(f"{path}: exists already; choose another name or add --overwrite")
