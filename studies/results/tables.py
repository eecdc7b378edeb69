"""The tables of docs/records/results that are made again with other weights; the page keeps its trainings' tables."""

from functools import partial

from steadyseg.studies.harness.tables import Tables
from steadyseg.studies.results.every import carried_table, every_table
from steadyseg.studies.results.overconfidence import overconfidence_table
from steadyseg.studies.results.replica import long_table


def tables() -> Tables:
    """The tables by their names in the page."""
    return {
        "carried": carried_table,
        "every": every_table,
        "overconfidence": overconfidence_table,
        "replica": partial(long_table, "replica"),
        "unseen-drive": partial(long_table, "unseen-drive"),
    }
