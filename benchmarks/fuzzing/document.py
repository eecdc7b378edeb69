"""The table of docs/reliability.md from docs/fuzzing.json."""

from typing import Any

from benchmarks.document import table

HEADER = (
    "kind", "files", "passed the first check", "how far they came", "opened and ran", "refused in one line",
    "traceback, hang, crash", "slowest", "memory above an undamaged file's",
)  # fmt: skip


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
