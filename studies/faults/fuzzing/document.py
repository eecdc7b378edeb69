"""The table of docs/studies/reliability from docs/studies/reliability/fuzzing.json."""

from typing import Any

from studies.harness.document import table, wrap

HEADER = (
    "kind",
    "files",
    "passed the first check",
    "how far they came",
    "opened and ran",
    "refused in one line",
    "traceback, hang, crash",
    "slowest",
    "memory above an undamaged file's",
)


def fuzzing_table(record: dict[str, Any]) -> str:
    """Markdown, one row a kind."""
    kinds = {name: row for name, row in record.items() if isinstance(row, dict) and "inputs" in row}
    return table(HEADER, (_row(name, row) for name, row in kinds.items()))


def _row(name: str, row: dict[str, Any]) -> list[str]:
    ends, count = dict(row["ends"]), row["inputs"]
    whole, refused = ends.pop("whole", 0), ends.pop("refused", 0)
    share = f"{row['passed_first_check']} ({row['passed_first_check'] / count:.0%})"
    reached = ", ".join(f"{stage} {reached}" for stage, reached in row["reached"].items())
    bad = sum(ends.values())
    memory = f"{row['most_memory_above_undamaged_mb']} MB"
    return [name, str(count), share, reached, str(whole), str(refused), str(bad), f"{row['slowest_s']} s", memory]


def fuzzing_section(record: dict[str, Any]) -> str:
    """Section of the page: the method, the limits, and the table."""
    kinds = [row for row in record.values() if isinstance(row, dict) and "inputs" in row]
    limits = record["limits"]
    count = sum(row["inputs"] for row in kinds)
    commits = ", ".join(sorted({row["commit"] for row in kinds}))
    words = wrap(f"""
`python -m studies.faults.fuzzing --count {count}` (commits {commits}): whole small files of every kind, and what a browser
sends to the page, get one to eight damages each: a byte, a number, a JSON value, a field of a message. Each is then opened as
the product opens it, in a process of its own; requests go to a real server. None may end in a traceback, or take over
{limits["seconds"]} s or {limits["memory_above_mb"]} MB more than a whole one. At least half of each kind must pass the first
check, so that what comes after it is reached.
""")
    return f"{words}\n\n{fuzzing_table(record)}"
