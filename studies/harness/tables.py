"""Generated tables in pages that are otherwise written by hand.

A page marks the place of a table by `<!-- table NAME -->` and `<!-- end -->`; `python -m studies tables` writes what
stands between them.
"""

import re
from collections.abc import Callable, Mapping
from pathlib import Path

from core.errors import InputError
from core.system.files import write_atomic

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
