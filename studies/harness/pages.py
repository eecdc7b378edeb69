"""Every page with generated tables, and the functions that make them.

A study's `tables()` makes the tables of its page. `card_tables(page)` of studies/results/cards.py makes the tables of
the README, of the page of results and of the model cards. Studies are imported by name: the harness lies below them.
"""

from pathlib import Path

from steadyseg.app.commands import load
from steadyseg.studies.harness.study import PAGES
from steadyseg.studies.harness.tables import Tables, write_tables

STUDIES = ("guide", "familiarity", "performance", "results")
"""Names of the folder of a study in studies and of its page in docs/records."""


def all_pages() -> dict[Path, Tables]:
    """The tables of each page."""
    cards = load("steadyseg.studies.results.cards:cards")()
    card_tables = load("steadyseg.studies.results.cards:card_tables")
    return {
        **{page: tables_of(name) for name in STUDIES for page in pages_of(name)},
        **{card: card_tables(card) for card in cards},
    }


def pages_of(name: str) -> list[Path]:
    """The page of a study, and beside it its appendices."""
    return [page for page in sorted((PAGES / name).glob("*.md")) if "<!-- table " in page.read_text()]


def tables_of(name: str) -> Tables:
    """The tables of docs/records/NAME."""
    made: Tables = load(f"steadyseg.studies.{name}.tables:tables")()
    return made


def write_page(name: str) -> None:
    """Writes the tables of docs/records/NAME from its record."""
    for page in pages_of(name):
        write_tables(page, tables_of(name))
