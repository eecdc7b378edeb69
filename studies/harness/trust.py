"""Tables of expected against true accuracy, from docs/records/familiarity/expected.json: several pages show them."""

from collections.abc import Iterable
from typing import Any

from steadyseg.studies.harness.tables import Tables, bind, read_record, table

Record = dict[str, Any]


def trust_tables() -> Tables:
    """The table of who may trust the expected accuracy where."""
    return bind(read_record("familiarity", "expected.json"), {"trust": trust, "roads": roads})


def roads(record: Record) -> str:
    """The table of the README: each network's accuracy, ECE and expected accuracy by data set."""
    names = list(record)

    def cell(one: Record) -> str:
        told = f"expects {100 * one['expected']:.0f}"
        return f"{100 * one['accuracy']:.1f}, {100 * one['ece']:.1f}; {told}" if "accuracy" in one else told

    sets = [title for title in record[names[0]]["sets"] if "corruptions" not in title]
    head = ["pictures of", *(f"{name}: right, ECE, expected, %" for name in names)]
    return table(head, ([title, *(cell(record[name]["sets"][title]) for name in names)] for title in sets))


def trust(record: Record) -> str:
    """Expected against true accuracy by data set, and the share of frames that few should trust."""

    def lines() -> Iterable[list[str]]:
        for name, found in record.items():
            for title, one in found["sets"].items():
                known = "accuracy" in one
                figures = [f"{100 * one[key]:.1f}" if known else "" for key in ("accuracy", "ece")]
                errors = [spread_of(one, "error"), spread_of(one.get("left_out", {}), "error"), spread_of(one, "mean")]
                told = [f"{100 * one['expected']:.1f}", f"{100 * one['doubtful']:.0f}", f"{100 * one['unlike']:.0f}"]
                rank = f"{one['rank']:.2f}" if known else ""
                yield [name, title, str(one["frames"]), *figures, *told, *errors, rank]

    head = ("network", "pictures of", "pictures", "right, %", "ECE of pixels, %", "expected, %", "doubtful, %")
    more = ("unlike, %", "error of a frame: median / 90th, points", "of a fit without this set")
    return table([*head, *more, "of the set's own mean", "rank correlation"], lines())


def spread_of(found: Record, of: str) -> str:
    """Median and 90th percentile in points, where they were measured."""
    return f"{100 * found[f'{of}_p50']:.1f} / {100 * found[f'{of}_p90']:.1f}" if f"{of}_p50" in found else ""
