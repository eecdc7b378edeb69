"""What a batch wrote, to compare two batches."""

import csv
import hashlib
from pathlib import Path


def contents(out: Path) -> dict[str, str]:
    """A hash of every mask, and of every table without its column of time."""
    found = {
        str(path.relative_to(out)): hashlib.sha256(path.read_bytes()).hexdigest() for path in out.glob("*/masks/*.png")
    }
    for path in out.glob("*/frames.csv"):
        text = str([row | {"wall_ms": ""} for row in table(path)])
        found[str(path.relative_to(out))] = hashlib.sha256(text.encode()).hexdigest()
    return found


def rows(out: Path) -> int:
    return sum(len(table(path)) for path in out.glob("*/frames.csv"))


def table(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8") as file:
        return list(csv.DictReader(file))
