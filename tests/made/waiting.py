"""How long tests wait for what a working program does soon."""

import time
from collections.abc import Callable
from typing import TypeVar

PATIENCE_S = 300.0
"""Only a program that hangs takes that long, also where other work leaves it a tenth of a core."""
T = TypeVar("T")


def wait_for(what: Callable[[], T]) -> T:
    """Calls `what` until its answer is true, and returns the answer."""
    deadline_s = time.monotonic() + PATIENCE_S
    while not (found := what()):
        assert time.monotonic() < deadline_s, f"it has not come about within {PATIENCE_S:g} s"
        time.sleep(0.01)
    return found
