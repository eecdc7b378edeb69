"""Tables of the sequential alarm in docs/studies/novelty."""

from collections.abc import Iterable
from typing import Any

from steadyseg.studies.harness.tables import table

Record = dict[str, Any]
HOME = ("val", "val mild", "test stills", "test stills mild", "held-out stills", "choice drive", "report drive")
PHOTOGRAPHS = ("photographs", "small photographs", "CIFAR-10 enlarged")
NO_PICTURES = ("noise", "one colour", "text", "test pattern", "green test pattern")


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
