"""What a runtime raises about a graph file, as one line: its errors have no common base but Exception."""

from collections.abc import Iterator
from contextlib import contextmanager

from core.errors import InputError


@contextmanager
def runtime_errors(what: str) -> Iterator[None]:
    """`what` says what cannot be done; the first line of the runtime's own words goes behind it."""
    try:
        yield
    except Exception as error:
        first = (str(error).strip() or type(error).__name__).splitlines()[0]
        raise InputError(f"{what} ({first})") from error
