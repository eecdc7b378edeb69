"""What a batch wrote, to compare two batches."""

import hashlib
from pathlib import Path

import pyarrow.parquet


def contents(out: Path) -> dict[str, str]:
    """A hash of every mask, and of every table without its column of time."""
    found = {
        str(path.relative_to(out)): hashlib.sha256(path.read_bytes()).hexdigest() for path in out.glob("*/masks/*.png")
    }
    for path in out.glob("*/frames.parquet"):
        text = str(pyarrow.parquet.read_table(path).drop_columns(["wall_ms"]).to_pylist())
        found[str(path.relative_to(out))] = hashlib.sha256(text.encode()).hexdigest()
    return found


def rows(out: Path) -> int:
    return sum(pyarrow.parquet.read_metadata(path).num_rows for path in out.glob("*/frames.parquet"))
