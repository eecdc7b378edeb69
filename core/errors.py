"""The one error that means "the input is at fault": it becomes one line on stderr and exit code 2."""

from pathlib import Path

MAX_CHARACTERS = 2000
"""Longest message, in characters: a quotation from a file may be a million letters long."""


class InputError(ValueError):
    """Bad input from outside; the message says what was given, what was expected and what to do."""

    def __str__(self) -> str:
        """The message as one printable line: a quoted part of a file may hold line breaks and control characters."""
        text = "".join(letter if letter.isprintable() else " " for letter in super().__str__())
        return text if len(text) <= MAX_CHARACTERS else f"{text[: MAX_CHARACTERS - 3]}..."


class CheckFailed(RuntimeError):
    """The work ran and its own check failed (a non-finite loss, a proof that does not hold): exit code 1."""


def refuse_existing(path: Path, overwrite: bool) -> None:
    """Raises InputError where `path` exists and `overwrite` is False."""
    if path.exists() and not overwrite:
        raise InputError(f"{path}: exists already; choose another name or add --overwrite")
