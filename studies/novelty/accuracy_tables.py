"""Tables of the statement about expected accuracy in docs/studies/novelty, from low_accuracy.json."""

from typing import Any

from steadyseg.studies.harness.tables import Tables, bind, read_record, table

Record = dict[str, Any]


def accuracy_tables() -> Tables:
    """The tables of the page by name; each is a function that writes the table."""
    return bind(read_record("novelty", "low_accuracy.json"), {"low-accuracy": said, "low-accuracy-forms": forms})


def said(record: Record) -> str:
    """How often and how soon it is said, and how true it is, by limit and kind of stream."""
    lines = [
        [
            name,
            kind,
            limit,
            f"{row['told']} of {row['streams']}",
            "" if row["delay_s"] is None else f"{row['delay_s']:.1f}",
            f"{row['said_s']:.0f}",
            share(row["true"]),
            share(row["accuracy_said"]),
            "" if kind.startswith("motorway") else f"{row['low_s']:.0f}",
            "" if kind.startswith("motorway") else f"{row['low_novel_s']:.0f}",
            "" if kind.startswith("motorway") else f"{row['low_said_s']:.0f}",
        ]
        for name, found in record.items()
        for kind, limits in found.get("kinds", {}).items()
        for limit, row in limits.items()
        if limit != "0.7"
    ]
    head = ["network", "streams of", "limit", "said in", "after, s", "said, s", "true of these, %", "accuracy then, %"]
    return table([*head, "truly below, s", "of these novel, s", "of these said, s"], lines)


def forms(record: Record) -> str:
    """The number of blocks on the streets for choosing."""
    lines = [
        [
            blocks,
            limit,
            str(row["onsets"]),
            str(row["told"]),
            f"{row['said_s']:.0f}",
            share(row["true"]),
            share(row["low_said_s"] / row["low_s"] if row["low_s"] else None),
        ]
        for found in record.values()
        for blocks, limits in found.get("choice", {}).items()
        for limit, row in limits.items()
    ]
    return table(["blocks", "limit", "times said", "streams", "said, s", "true, %", "of the low seconds, %"], lines)


def share(value: float | None) -> str:
    return "" if value is None else f"{100 * value:.0f}"
