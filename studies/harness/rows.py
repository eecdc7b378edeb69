"""Rows of a report: dicts with `model`, `mode` and `samples` beside their metrics."""

from collections.abc import Iterable
from typing import Any

from steadyseg.core.method import Method

Row = dict[str, Any]


def title_of(row: Row) -> str:
    """The network and the method of a row in a few characters."""
    return f"{row['model']} {Method(row['mode'], row['samples'])}"


def titles_of(rows: Iterable[Row]) -> list[str]:
    """The titles of the rows, each once, in order."""
    return list(dict.fromkeys(map(title_of, rows)))
