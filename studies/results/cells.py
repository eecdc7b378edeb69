"""Parts of every table of docs/studies/results: one measured row, its cells, changes."""

from collections.abc import Iterable
from typing import Any

Rows = dict[str, Any]
"""docs/studies/results/record.json: job -> {"rows": {protocol: {method: figures}}, ...}."""
ABSENT = "-"
SHOWN = ("nll", "accuracy", "miou", "ece", "consistency")
TITLES_SHOWN = ("NLL", "acc", "mIoU", "ECE", "cons")
TITLES = {"stream": "Stream (val)", "moving-stills": "Moving stills (test)", "stills": "Stills (test)"}
"""The protocols that all rows are of."""


def row_at(rows: Rows, job: str, protocol: str, method: str) -> dict[str, Any] | None:
    """One measured row, or None where it has not been measured."""
    found = rows.get(job, {}).get("rows", {}).get(protocol, {}).get(method)
    return dict(found) if found else None


def format_row(row: dict[str, Any] | None, keys: Iterable[str] = SHOWN) -> list[str]:
    """Cells: NLL with four digits, shares in percent."""
    return [ABSENT if row is None or row.get(key) is None else cell(key, row[key]) for key in keys]


def cell(key: str, value: float) -> str:
    if key in ("nll", "cec"):
        return f"{value:.4f}"
    return f"{100 * value:.2f}"


def mark_columns(word: str, titles: Iterable[str]) -> list[str]:
    """The columns of a second set of figures, told apart by a word before the first."""
    first, *others = titles
    return [f"{word}: {first}", *others]


def yes(flag: bool) -> str:
    return "yes" if flag else ABSENT


def percent(value: float | None) -> str:
    return ABSENT if value is None else f"{100 * value:.1f}"


def change(row: dict[str, Any] | None, base: dict[str, Any] | None) -> str:
    return ABSENT if row is None or base is None else f"{100 * (row['nll'] / base['nll'] - 1):+.1f} %"
