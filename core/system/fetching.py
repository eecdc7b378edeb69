"""Retries of downloads: temporary failures, waiting times and messages."""

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from http.client import HTTPException
from typing import TypeVar
from urllib.error import HTTPError, URLError

LONGEST_RETRY_AFTER_S = 60.0
TRANSIENT_STATUS = frozenset({408, 425, 429, 500, 502, 503, 504})
HEADERS = {"User-Agent": "steadyseg"}

T = TypeVar("T")


class FetchError(Exception):
    """Failure of one try at one file; the message completes "URL ..."."""

    def __init__(self, what: str, *, transient: bool = True, wait_s: float = 0.0) -> None:
        super().__init__(what)
        self.transient = transient
        self.wait_s = wait_s


@contextmanager
def fetch_errors() -> Iterator[None]:
    """Turns the exceptions of urllib and sockets into FetchErrors."""
    try:
        yield
    except HTTPError as error:
        with error:
            raise _as_fetch_error(error) from error
    except URLError as error:
        raise FetchError(f"cannot be reached ({in_line(error.reason)}); check the network") from error
    except (OSError, HTTPException) as error:
        raise FetchError(f"broke off ({in_line(error)}); check the network") from error


def with_retries(once: Callable[[], T], pauses_s: Sequence[float], wait: Callable[[float], None]) -> T:
    """Calls the function until it succeeds, with one try more than there are pauses; `wait` gets the seconds, or the
    server's wish if that is longer."""
    for pause_s in pauses_s:
        try:
            return once()
        except FetchError as failure:
            if not failure.transient:
                raise
            wait(max(pause_s, failure.wait_s))
    return once()


def in_line(error: object) -> str:
    """An error as part of one line."""
    text = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return " ".join(text.split()) or type(error).__name__


def _as_fetch_error(error: HTTPError) -> FetchError:
    """The FetchError of an HTTP status: a 404 is permanent; a busy server is tried again after the time it names."""
    asked = error.headers.get("Retry-After", "")
    wait_s = min(float(asked), LONGEST_RETRY_AFTER_S) if re.fullmatch(r"[0-9]{1,9}", asked) else 0.0
    return FetchError(
        f"answered {error.code} {in_line(error.reason)}", transient=error.code in TRANSIENT_STATUS, wait_s=wait_s
    )
