"""What every study's command line does with bad input."""

import sys
from collections.abc import Callable

from core.errors import InputError


def exit_code(name: str, work: Callable[[], None]) -> int:
    """0, or 2 with the one line that says what was wrong."""
    try:
        work()
    except InputError as error:
        print(f"{name}: {error}", file=sys.stderr)
        return 2
    return 0
