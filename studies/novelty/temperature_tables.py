"""Tables of the fitted temperature against the frame's temperature, from temperatures.json."""

from collections.abc import Callable
from typing import Any

import numpy as np

from steadyseg.studies.harness.tables import Tables, bind, read_record, table

Record = dict[str, Any]
EQUAL = 5e-5
"""ECE that counts as equal: half a digit of the table."""


def temperature_tables() -> Tables:
    makers = {"temperatures": summary_table, "types": types_table, "streams": streams_table}
    return bind(read_record("novelty", "temperatures.json"), makers)


def of_type(found: Any, kind: str, way: str, key: str) -> float:
    """Mean over the severities of one type."""
    return float(np.mean([cell[way][key] for cell in found["corrupted"][kind].values()]))


def over_types(found: Any, way: str, key: str) -> float:
    return float(np.mean([of_type(found, kind, way, key) for kind in found["corrupted"]]))


def over_stream(found: Any, way: str, key: str) -> float:
    return float(np.mean([row[way][key] for row in found["stream"].values()]))


def changes(found: Any) -> list[float]:
    """Change of the ECE of every type by the frame's temperature."""
    return [of_type(found, kind, "frame", "ece") - of_type(found, kind, "one", "ece") for kind in found["corrupted"]]


def pair(values: Callable[[str], float], form: str, scale: float = 1.0) -> str:
    """The metric at the fitted temperature and at the frame's temperature."""
    one, frame = (f"{scale * values(way):{form}}" for way in ("one", "frame"))
    return f"{one} -> {frame}"


def cell_pair(row: Any, key: str) -> str:
    return pair(lambda way: float(row[way][key]), ".2f" if key == "ece" else ".4f", 100 if key == "ece" else 1)


def expected(found: Any) -> str:
    return pair(lambda way: float(found["expected"][way]), ".2f", 100)


def summary_table(record: Record) -> str:
    """Each target: the fitted temperature -> the frame's temperature."""
    rows: list[tuple[str, str, Callable[[Any], str]]] = [
        ("test stills, NLL", "at most 0.5 % more", lambda f: cell_pair(f["home"], "nll")),
        ("test stills, ECE, %", "not higher", lambda f: cell_pair(f["home"], "ece")),
        ("val stream, NLL", "at most 0.5 % more", lambda f: cell_pair(f["stream"]["clean"], "nll")),
        ("val stream, ECE, %", "not higher", lambda f: cell_pair(f["stream"]["clean"], "ece")),
        ("15 corruptions, ECE, %", "at most 3.0", lambda f: pair(lambda way: over_types(f, way, "ece"), ".2f", 100)),
        ("the same at temperature 1", "", lambda f: f"{100 * over_types(f, 'none', 'ece'):.2f}"),
        ("15 corruptions, NLL", "", lambda f: pair(lambda way: over_types(f, way, "nll"), ".3f")),
        ("types with an ECE not higher", "13 or more", lambda f: str(sum(one <= EQUAL for one in changes(f)))),
        ("worst type, ECE, points", "less than +1", lambda f: f"{100 * max(changes(f)):+.2f}"),
        (
            "6 conditions of the stream, ECE, %",
            "lower",
            lambda f: pair(lambda way: over_stream(f, way, "ece"), ".2f", 100),
        ),
        ("6 conditions of the stream, NLL", "lower", lambda f: pair(lambda way: over_stream(f, way, "nll"), ".4f")),
        ("expected against true accuracy of a frame, points", "", expected),
        ("test stills that are warmer, %", "", lambda f: f"{100 * f['home']['warmer']:.1f}"),
    ]
    lines = [[name, wanted, *(figure(found) for found in record.values())] for name, wanted, figure in rows]
    return table(["fitted -> of the frame", "wanted", *record], lines)


def types_table(record: Record) -> str:
    parts = []
    for name, found in record.items():
        lines = []
        for kind, row in found["corrupted"].items():
            ece = [f"{100 * of_type(found, kind, way, 'ece'):.1f}" for way in ("none", "one", "frame")]
            nll = [f"{of_type(found, kind, way, 'nll'):.2f}" for way in ("none", "one", "frame")]
            warmer = np.mean([cell["warmer"] for cell in row.values()])
            lines.append([kind, *ece, *nll, f"{100 * warmer:.0f}"])
        head = ["type", "ECE, %, at 1", "fitted", "of the frame", "NLL at 1", "fitted", "of the frame", "warmer, %"]
        parts.append(f"`{name}`\n\n{table(head, lines)}")
    return "\n\n".join(parts)


def streams_table(record: Record) -> str:
    lines = [
        [name, kind, cell_pair(row, "ece"), cell_pair(row, "nll"), f"{100 * row['warmer']:.0f}"]
        for name, found in record.items()
        for kind, row in found["stream"].items()
    ]
    return table(["network", "type", "ECE, %: fitted -> of the frame", "NLL", "frames that are warmer, %"], lines)
