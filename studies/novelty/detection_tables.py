"""Tables of what novelty and other scores detect: foreign pictures and other cameras."""

from collections.abc import Callable, Iterable
from typing import Any

from steadyseg.studies.harness.tables import table

Record = dict[str, Any]
CONTROL_SCORES = ("distance, last stage", "the same, cameras not shown", "entropy")
MOTORWAYS = ("motorway 1", "motorway 2")
NO_ROADS = tuple(
    (
        "photographs, small photographs, CIFAR-10 enlarged, moving photographs, noise, one colour, text, test "
        "pattern, green test pattern"
    ).split(", ")
)
SEEDS = "paper-plain"
"""Networks of one recipe that differ in their seed."""


def percent(value: float) -> str:
    return f"{100 * value:.1f}"


def included(record: Record) -> dict[str, Any]:
    """The networks that come with the package."""
    return {name: found for name, found in record["networks"].items() if not name.startswith(SEEDS)}


def by_network(record: Record, head: list[str], lines: Callable[[Any], Iterable[list[str]]]) -> str:
    """A table for every included network."""
    return "\n\n".join(f"`{name}`\n\n{table(head, lines(found))}" for name, found in included(record).items())


def pictures_table(record: Record) -> str:
    scores = list(next(iter(included(record).values()))["foreign"]["noise"]["auroc"])

    def lines(found: Any) -> Iterable[list[str]]:
        for kind, row in found["foreign"].items():
            aurocs = (f"{row['auroc'][score]:.2f}" for score in scores)
            yield [kind, str(row["pictures"]), percent(row["alarms"]), *aurocs]

    return by_network(record, ["pictures of", "pictures", "alarms, %", *scores], lines)


def motorways_table(record: Record) -> str:
    lines = []
    for name, clips in record["motorway_labels"].items():
        for clip, row in (clips or {}).items():
            right = (percent(row[key]) for key in ("Sky", "Road", "Car", "all"))
            sure = (percent(row["confidence"][way]) for way in ("none", "frame"))
            lines.append([name, clip, *right, *sure])
    head = ["network", "clip", "sky", "road", "vehicles", "all", "confidence at temperature 1", "of the frame"]
    return table(head, lines)


def cameras_table(record: Record) -> str:
    def lines(found: Any) -> Iterable[list[str]]:
        for kind, row in found["controls"].items():
            change = f"{100 * (row['accuracy'] - row['clean_accuracy']):+.1f}"
            aurocs = (f"{row['auroc'][score]:.2f}" for score in ("novelty", *CONTROL_SCORES))
            yield [kind, percent(row["alarms"]), change, *aurocs]

    return by_network(record, ["change", "alarms, %", "accuracy, points", "AUROC: novelty", *CONTROL_SCORES], lines)


DETECTION: dict[str, Callable[[Record], str]] = {
    "pictures": pictures_table,
    "motorways": motorways_table,
    "cameras": cameras_table,
}
