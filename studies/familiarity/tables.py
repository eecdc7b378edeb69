"""The tables of docs/records/familiarity, from its record."""

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from steadyseg.studies.harness.tables import Tables, bind, read_record, table
from steadyseg.studies.harness.trust import trust_tables

Record = dict[str, Any]
Figure = Callable[[Any], float]
PHOTOGRAPHS = ("photographs", "small photographs", "CIFAR-10 enlarged")
MOTORWAYS = ("motorway 1", "motorway 2")
NO_PICTURES = ("noise", "one colour", "text", "test pattern", "green test pattern")
NO_ROADS = (*PHOTOGRAPHS, "moving photographs", *NO_PICTURES)
SEEDS = "paper-plain"
"""Networks of one recipe that differ in their seed."""


def tables() -> Tables:
    """The tables by their names in the page."""
    makers = {"targets": targets_table, "pictures": pictures_table}
    return {**bind(read_record("familiarity"), makers), "trust": trust_tables()["trust"]}


def included(record: Record) -> dict[str, Any]:
    """The networks that come with the package."""
    return {name: found for name, found in record["networks"].items() if not name.startswith(SEEDS)}


def worst(found: Any, kinds: tuple[str, ...], score: str = "familiarity") -> float:
    return float(min(found["foreign"][kind]["auroc"][score] for kind in kinds))


def motorway(clip: str) -> Figure:
    return lambda found: float(found["foreign"][clip]["auroc"]["familiarity"])


def codec(clip: str) -> Figure:
    return lambda found: float(found["controls"][f"codec of {clip}"]["auroc"]["familiarity"])


TARGETS: tuple[tuple[str, str, Figure, str], ...] = (
    ("AUROC, no road and no picture, worst kind", ">= 0.99", lambda f: worst(f, NO_ROADS), ".3f"),
    ("the same by mean entropy", "", lambda f: worst(f, NO_ROADS, "entropy"), ".3f"),
    *((f"AUROC, {clip}", ">= 0.95", motorway(clip), ".2f") for clip in MOTORWAYS),
    *((f"test stills through the codec of {clip}", "<= 0.65", codec(clip), ".2f") for clip in MOTORWAYS),
    ("novel, val stream, %", "<= 10", lambda f: 100 * f["alarms"]["val"]["alarms"], ".1f"),
    ("novel, Seq05VD, %", "<= 15", lambda f: 100 * f["alarms"]["Seq05VD"]["alarms"], ".1f"),
    ("novel, mild and camera-only changes, %", "<= 15", lambda f: 100 * f["mild_alarms"]["alarms"], ".1f"),
)


def targets_table(record: Record) -> str:
    """Every target; the last column has the three trainings of one recipe: mean, least and most."""
    seeds = [found for name, found in record["networks"].items() if name.startswith(SEEDS)]
    lines = []
    for name, wanted, figure, form in TARGETS:
        trained = [figure(found) for found in seeds]
        spread = f"{np.mean(trained):{form}} ({min(trained):{form}} to {max(trained):{form}})"
        lines.append([name, wanted, *(f"{figure(found):{form}}" for found in included(record).values()), spread])
    return table(["figure", "wanted", *included(record), f"{SEEDS}, {len(seeds)} trainings"], lines)


def pictures_table(record: Record) -> str:
    """Scores by kind of picture, a table for every included network."""
    scores = list(next(iter(included(record).values()))["foreign"]["noise"]["auroc"])
    head = ["pictures of", "pictures", "novel, %", *scores]

    def lines(found: Any) -> Iterable[list[str]]:
        for kind, row in found["foreign"].items():
            aurocs = (f"{row['auroc'][score]:.2f}" for score in scores)
            yield [kind, str(row["pictures"]), f"{100 * row['alarms']:.1f}", *aurocs]

    return "\n\n".join(f"`{name}`\n\n{table(head, lines(found))}" for name, found in included(record).items())
