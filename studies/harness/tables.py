"""Generated tables in pages that are otherwise written by hand.

A page marks the place of a table by `<!-- table NAME -->` and `<!-- end -->`; `python -m steadyseg.studies tables`
writes what stands between them.
"""

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from steadyseg.core.errors import InputError
from steadyseg.core.system.files import write_atomic
from steadyseg.studies.harness.study import PAGES

Tables = Mapping[str, Callable[[], str]]
"""Functions that return the Markdown of a table, by its name in the page."""
MARKED = re.compile(r"<!-- table (\S+) -->\n.*?<!-- end -->", re.DOTALL)


def with_tables(text: str, tables: Tables) -> str:
    """Returns the page with each marked table made anew. Raises InputError for a name without a function."""

    def renew(found: re.Match[str]) -> str:
        if found[1] not in tables:
            raise InputError(f"no table is named {found[1]}; there are {', '.join(tables)}")
        return f"<!-- table {found[1]} -->\n{tables[found[1]]().strip()}\n<!-- end -->"

    return MARKED.sub(renew, text)


def write_tables(page: Path, tables: Tables) -> None:
    """Writes the page's tables in place."""
    write_atomic(page, with_tables(page.read_text(), tables).encode())


def read_record(page: str, name: str = "record.json") -> dict[str, Any]:
    """The committed figures of docs/records/PAGE."""
    return dict(json.loads((PAGES / page / name).read_text()))


def bind(record: dict[str, Any], makers: Mapping[str, Callable[[dict[str, Any]], str]]) -> Tables:
    """Binds table functions to the record that they all read."""
    return {name: partial(make, record) for name, make in makers.items()}


def table(header: Iterable[str], lines: Iterable[Iterable[str]]) -> str:
    """A Markdown table; empty where there are no lines."""
    titles, body = list(header), [list(line) for line in lines]
    if not body:
        return ""
    return pipes([titles, ["---"] * len(titles), *body])


def report_table(columns: Sequence[str], rows: Sequence[Sequence[Any]], form: str) -> str:
    """A Markdown table of a report; numbers in this form and to the right, a dash for None."""
    is_text = [all(isinstance(row[place], str) for row in rows) for place in range(len(columns))]
    rule = ["---" if text else "---:" for text in is_text]
    return pipes([columns, rule, *([figure(value, form) for value in row] for row in rows)])


def figure(value: Any, form: str) -> str:
    """A number in this form; a dash for None."""
    if value is None:
        return "-"
    return f"{value:{form}}" if isinstance(value, float) else str(value)


def pipes(lines: Iterable[Sequence[str]]) -> str:
    return "\n".join("| " + " | ".join(cells) + " |" for cells in lines)


def paragraphs(parts: Iterable[str]) -> str:
    """The parts that are not empty, with a blank line between them."""
    return "\n\n".join(part for part in parts if part) + "\n"


def bullets(lines: Iterable[str]) -> str:
    return "\n".join(f"* {line}" for line in lines)
