"""Parser of JSON from elsewhere, which refuses values that Python's parser accepts and later code cannot handle."""

import json
from collections.abc import Iterator, Mapping
from typing import Any

MAX_DEPTH = 32
"""Depth of lists and objects in one another. Records of ours have seven levels; Python cannot copy or write 300."""
MAX_DIGITS = 20
"""Digits of a whole number of 64 bits. Python can compare a very long number, but not convert it to a float."""


def parse_json(text: str | bytes) -> Any:
    """Parses JSON; ValueError for other text, too deep nesting and huge whole numbers.

    NaN and Infinity, which Python writes, are accepted.
    """
    try:
        value = json.loads(text, parse_int=_whole)
    except RecursionError as error:
        raise ValueError(f"more than {MAX_DEPTH} lists and objects in one another") from error
    level = [value]
    for _ in range(MAX_DEPTH):
        level = [part for one in level for part in _parts(one)]
    if level:
        raise ValueError(f"more than {MAX_DEPTH} lists and objects in one another")
    return value


def leaves(record: Mapping[str, Any], inside: str = "") -> Iterator[tuple[str, Any]]:
    """Yields every value of a record and its tables, with its dotted name: ('loop.epochs', 60), ..."""
    for name, value in record.items():
        if isinstance(value, dict):
            yield from leaves(value, f"{inside}{name}.")
        else:
            yield f"{inside}{name}", value


def _whole(digits: str) -> int:
    if len(digits) > MAX_DIGITS:
        raise ValueError(f"a whole number has {len(digits)} digits, at most {MAX_DIGITS} are read")
    return int(digits)


def _parts(value: Any) -> list[Any]:
    """The lists and objects that are direct members of the value."""
    inside = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return [part for part in inside if isinstance(part, list | dict)]
