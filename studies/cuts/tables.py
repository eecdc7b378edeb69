"""The tables of docs/studies/cuts."""

from typing import Any

from steadyseg.studies.cuts.measure import AFTER
from steadyseg.studies.harness.study import PAGES, Cache
from steadyseg.studies.harness.tables import Tables


def tables() -> Tables:
    """The tables of the page by name; each is a function that writes the table."""
    record = {name: part["rows"] for name, part in Cache(PAGES / "cuts" / "record.json").record.items()}
    return {"found": lambda: found(record), "false": lambda: false(record), "after": lambda: after(record)}


def found(record: dict[str, Any]) -> str:
    """Cuts found at their frame, by the two scenes."""
    rows = record["joined"]
    total = {key: sum(row[key] for row in rows.values()) for key in ("cuts", "found", "elsewhere")}
    lines = [f"| {name} | {row['cuts']} | {row['found']} | {row['elsewhere']} |" for name, row in rows.items()]
    lines.append(f"| all | {total['cuts']} | {total['found']} | {total['elsewhere']} |")
    return "\n".join(["| scenes | cuts | found at their frame | found elsewhere |", "|---|---|---|---|", *lines])


def false(record: dict[str, Any]) -> str:
    """Cuts found where there is none."""
    lit = record["lit drives"]
    rows = [
        *(
            (f"{name}, whole clip", f"{clip['frames']} frames", clip["found"])
            for name, clip in record["continuous"].items()
        ),
        *((f"street, {light}", f"{lit['minutes']:g} minutes in all", count) for light, count in lit["found"].items()),
        *((name, f"{row['clips']} clips", row["found"]) for name, row in record["other changes"].items()),
    ]
    return "\n".join(["| clip | length | cuts found |", "|---|---|---|", *(f"| {a} | {b} | {c} |" for a, b, c in rows)])


def after(record: dict[str, Any]) -> str:
    """NLL of the first frames after a cut."""
    head = f"| network | mean | cuts | cut | {' | '.join(f'frame {age + 1}' for age in range(AFTER))} |"
    rows = [
        f"| {model} | {method} | {row['cuts']} | {kind} | {' | '.join(f'{value:.3f}' for value in row['nll'])} |"
        for model in ("street-tiny", "camvid-realtime")
        for method, kinds in record[model].items()
        for kind, row in kinds.items()
    ]
    return "\n".join([head, "|---" * (4 + AFTER) + "|", *rows])
