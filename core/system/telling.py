"""A line on the terminal for what takes long before its first result."""

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

SILENT_S = 1.0
"""Nobody waits longer without a word: torch alone loads for two seconds on an idle machine."""


@contextmanager
def telling(line: str) -> Iterator[None]:
    """Prints the line on stderr where the block takes longer than `SILENT_S`.

    Only on a terminal: a log, and the one line of a refusal, stay as they are.
    """
    timer = threading.Timer(SILENT_S, print, (line,), {"file": sys.stderr, "flush": True})
    timer.daemon = True
    if sys.stderr.isatty():
        timer.start()
    try:
        yield
    finally:
        timer.cancel()
