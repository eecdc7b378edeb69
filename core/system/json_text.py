"""Parser of JSON from elsewhere, which refuses values that Python's parser accepts and later code cannot handle."""

import json
from typing import Any

MAX_DEPTH = 32
"""Lists and objects in one another; records of ours have seven. Copying or writing 300 would exceed Python's own
limit."""


def parse_json(text: str | bytes) -> Any:
    """Parses JSON; ValueError for other text and for too deep nesting. NaN and Infinity, which Python writes, are
    accepted."""
    try:
        value = json.loads(text)
    except RecursionError as error:
        raise ValueError(f"more than {MAX_DEPTH} lists and objects in one another") from error
    level = [value]
    for _ in range(MAX_DEPTH):
        level = [part for one in level for part in _parts(one)]
    if level:
        raise ValueError(f"more than {MAX_DEPTH} lists and objects in one another")
    return value


def _parts(value: Any) -> list[Any]:
    """The lists and objects directly inside."""
    inside = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return [part for part in inside if isinstance(part, list | dict)]
