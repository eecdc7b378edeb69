"""The tables of docs/records/familiarity, from its record."""

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from steadyseg.studies.harness.tables import Tables, bind, read_record, table

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
    return {**bind(read_record("familiarity"), makers), **trust_tables()}


def trust_tables() -> Tables:
    """The table of who may trust the expected accuracy where."""
    return bind(read_record("familiarity", "expected.json"), {"trust": trust, "roads": roads})


def roads(record: Record) -> str:
    """The table of the README: each network's accuracy, ECE and expected accuracy by data set."""
    names = list(record)

    def cell(one: Record) -> str:
        told = f"expects {100 * one['expected']:.0f}"
        return f"{100 * one['accuracy']:.1f}, {100 * one['ece']:.1f}; {told}" if "accuracy" in one else told

    sets = list(record[names[0]]["sets"])
    head = ["pictures of", *(f"`{name}`: right, ECE, expected, %" for name in names)]
    return table(head, ([title, *(cell(record[name]["sets"][title]) for name in names)] for title in sets))


def trust(record: Record) -> str:
    """Expected against true accuracy by data set, and the share of frames that few should trust."""

    def lines() -> Iterable[list[str]]:
        for name, found in record.items():
            for title, one in found["sets"].items():
                known = "accuracy" in one
                figures = [f"{100 * one[key]:.1f}" if known else "" for key in ("accuracy", "ece")]
                errors = [
                    f"{100 * one[f'{of}_p50']:.1f} / {100 * one[f'{of}_p90']:.1f}" if known else ""
                    for of in ("error", "mean")
                ]
                told = [f"{100 * one['expected']:.1f}", f"{100 * one['doubtful']:.0f}", f"{100 * one['unlike']:.0f}"]
                rank = f"{one['rank']:.2f}" if known else ""
                yield [name, title, str(one["frames"]), *figures, *told, *errors, rank]

    head = ("network", "pictures of", "pictures", "right, %", "ECE of pixels, %", "expected, %", "doubtful, %")
    more = ("unlike, %", "error of a frame: median / 90th, points", "of the set's own mean", "rank correlation")
    return table([*head, *more], lines())


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
