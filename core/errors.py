"""The error for bad input, which becomes one line on stderr and exit code 2, and the error for a failed check."""

import difflib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

MAX_CHARACTERS = 2000
"""Longest message, in characters: a quotation from a file may be a million letters long."""


def printable(text: str) -> str:
    """The text as one printable line: a quoted part of a file may hold line breaks, control characters, surrogates."""
    text = "".join(letter if letter.isprintable() else " " for letter in text)
    return text if len(text) <= MAX_CHARACTERS else f"{text[: MAX_CHARACTERS - 3]}..."


class InputError(ValueError):
    """Bad input from outside; the message says what was given, what was expected and what to do."""

    def __str__(self) -> str:
        return printable(super().__str__())


class CheckFailed(RuntimeError):
    """The work ran and its own check failed (a non-finite loss, a proof that does not hold): exit code 1."""

    def __str__(self) -> str:
        return printable(super().__str__())


def shorten(value: Any) -> str:
    """A value as one short line for a message."""
    try:
        text = repr(value if not isinstance(value, str | list | tuple) else value[:200])
    except (ValueError, RecursionError):  # an int of more than 4300 digits, a list in a list in a list ...
        text = f"a {type(value).__name__} that cannot be shown"
    return text if len(text) <= 80 else f"{text[:77]}..."


def first_line(error: BaseException) -> str:
    """The first line of a library's error, or its type where the message is empty."""
    text = str(error.args[0]) if isinstance(error, KeyError) and error.args else str(error)  # str() quotes a KeyError's
    return (text.strip() or type(error).__name__).splitlines()[0]


def in_line(error: object) -> str:
    """An error as part of one line."""
    text = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return " ".join(text.split()) or type(error).__name__


def suggest(name: object, known: Sequence[str]) -> str:
    """The end of a message about an unknown name: the nearest known names, or all known names."""
    near = difflib.get_close_matches(str(name).lower()[:80], known, n=3)
    return f"did you mean {' or '.join(near)}?" if near else f"known are {', '.join(known)}"


def refuse_existing(path: Path, overwrite: bool) -> None:
    """Raises InputError where `path` exists and `overwrite` is False."""
    if path.exists() and not overwrite:
        raise InputError(f"{path}: exists already; choose another name or add --overwrite")
