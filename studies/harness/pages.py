"""Every page with generated tables, and the functions that make them.

The tables of docs/studies/NAME are made by `tables()` of studies/NAME/tables.py, those of the README and the model
cards by `card_tables(page)` of studies/results/cards.py. Studies are imported by name: the harness lies below them.
"""

from pathlib import Path

from app.commands import load
from studies.harness.study import PAGES
from studies.harness.tables import Tables

STUDIES = ("ablations", "classification", "results", "training")


def all_pages() -> dict[Path, Tables]:
    """The tables of each page."""
    cards = load("studies.results.cards:cards")()
    card_tables = load("studies.results.cards:card_tables")
    return {
        **{PAGES / name / "README.md": load(f"studies.{name}.tables:tables")() for name in STUDIES},
        **{card: card_tables(card) for card in cards},
    }
