"""Tables of the sequential alarm and of a low expected accuracy in docs/studies/novelty."""

from collections.abc import Iterable
from typing import Any

from steadyseg.studies.harness.tables import Tables, bind, read_record, table

Record = dict[str, Any]
HOME = ("val", "val mild", "test stills", "test stills mild", "held-out stills", "choice drive", "report drive")
PHOTOGRAPHS = ("photographs", "small photographs", "CIFAR-10 enlarged")
NO_PICTURES = ("noise", "one colour", "text", "test pattern", "green test pattern")


def alarm_tables() -> Tables:
    """The tables of the page by name; each is a function that writes the table."""
    return {
        **bind(read_record("novelty", "alarms.json"), {"alarm-home": home, "alarm-foreign": foreign}),
        **bind(read_record("novelty", "low_accuracy.json"), {"low-accuracy": low_accuracy}),
    }


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


def low_accuracy(record: Record) -> str:
    """How often and how soon a low accuracy is expected, and how true it is, by limit and kind of stream."""
    lines = [
        [
            name,
            kind,
            limit,
            f"{row['told']} of {row['streams']}",
            "" if row["delay_s"] is None else f"{row['delay_s']:.1f}",
            f"{row['said_s']:.0f}",
            *("" if row[key] is None else f"{100 * row[key]:.0f}" for key in ("true", "accuracy_said")),
            *(
                "" if kind.startswith("motorway") else f"{row[key]:.0f}"
                for key in ("low_s", "low_novel_s", "low_said_s")
            ),
        ]
        for name, found in record.items()
        for kind, limits in found.get("kinds", {}).items()
        for limit, row in limits.items()
        if limit != "0.7"
    ]
    head = ["network", "streams of", "limit", "said in", "after, s", "said, s", "true of these, %", "accuracy then, %"]
    return table([*head, "truly below, s", "of these novel, s", "of these said, s"], lines)
