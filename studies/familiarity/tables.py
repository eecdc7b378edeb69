"""The tables of docs/records/familiarity, from its record."""

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from steadyseg.studies.harness.tables import Tables, bind, read_record, table

Record = dict[str, Any]
Figure = Callable[[Any], float]
HOME = ("val", "val mild", "test stills", "test stills mild", "held-out stills", "choice drive", "report drive")
PHOTOGRAPHS = ("photographs", "small photographs", "CIFAR-10 enlarged")
MOTORWAYS = ("motorway 1", "motorway 2")
NO_PICTURES = ("noise", "one colour", "text", "test pattern", "green test pattern")
NO_ROADS = (*PHOTOGRAPHS, "moving photographs", *NO_PICTURES)
SEEDS = "paper-plain"
"""Networks of one recipe that differ in their seed."""


def tables() -> Tables:
    """The tables by their names in the page."""
    makers = {"targets": targets_table, "pictures": pictures_table}
    alarms = bind(read_record("familiarity", "alarms.json"), {"alarm-home": home, "alarm-foreign": foreign})
    return {**bind(read_record("familiarity"), makers), **alarms}


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
    ("alarms, val stream, %", "<= 10", lambda f: 100 * f["alarms"]["val"]["alarms"], ".1f"),
    ("alarms, Seq05VD, %", "<= 15", lambda f: 100 * f["alarms"]["Seq05VD"]["alarms"], ".1f"),
    ("alarms, mild and camera-only changes, %", "<= 15", lambda f: 100 * f["mild_alarms"]["alarms"], ".1f"),
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
    head = ["pictures of", "pictures", "alarms, %", *scores]

    def lines(found: Any) -> Iterable[list[str]]:
        for kind, row in found["foreign"].items():
            aurocs = (f"{row['auroc'][score]:.2f}" for score in scores)
            yield [kind, str(row["pictures"]), f"{100 * row['alarms']:.1f}", *aurocs]

    return "\n\n".join(f"`{name}`\n\n{table(head, lines(found))}" for name, found in included(record).items())


def home(record: Record) -> str:
    """False alarms, with the upper end of the rate's interval."""

    def lines() -> Iterable[list[str]]:
        for name, found in record.items():
            for kind, row in found["kinds"].items():
                if kind in HOME:
                    length = f"{60 * row['hours']:.1f}"
                    yield [name, kind, str(row["streams"]), length, str(row["alarms"]), f"{row['an_hour_at_most']:.1f}"]

    return table(["network", "streams of", "streams", "minutes", "alarms", "an hour at most (95 %)"], lines())


def foreign(record: Record) -> str:
    """Share of the streams that are told within 5 s, by kind."""

    def told(rows: list[Any]) -> str:
        count = sum(row["streams"] for row in rows)
        return f"{count - sum(row['missed'] for row in rows)} of {count}" if rows else ""

    def lines() -> Iterable[list[str]]:
        for name, found in record.items():
            kinds = found["kinds"]
            yield [
                name,
                *(delay(found["streams"].get(f"motorway: {clip}")) for clip in ("motorway 1", "motorway 2")),
                told([kinds[kind] for kind in PHOTOGRAPHS if kind in kinds]),
                told([kinds[kind] for kind in NO_PICTURES if kind in kinds]),
                told([kinds[kind] for kind in ("street", "camvid") if kind in kinds]),
                told([row for kind, row in kinds.items() if kind in ("corrupted val", "report street of severity 3")]),
                told([row for kind, row in kinds.items() if kind == "report street of severity 5"]),
            ]

    return table(
        [
            *("network", "motorway 1", "motorway 2", "camera over photographs", "screens and noise"),
            *("street, or CamVid", "15 corruptions, severity 3", "severity 5"),
        ],
        lines(),
    )


def delay(row: Any) -> str:
    return "" if row is None else f"{row['delay_s']:.1f} s" if row["alarms"] else "none"
