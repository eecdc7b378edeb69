"""What a batch has left: hashes of all that must not depend on the engine or on what was killed."""

import hashlib
from pathlib import Path

import pyarrow.parquet


def contents(out: Path) -> dict[str, str]:
    """Of every mask and every table without its column of time: a hash. Every folder is whole."""
    found = {}
    for path in sorted(out.glob("*/masks/*")):
        found[str(path.relative_to(out))] = hashlib.sha256(path.read_bytes()).hexdigest()
    for path in sorted(out.glob("*/frames.parquet")):
        table = pyarrow.parquet.read_table(path).drop_columns(["wall_ms"])
        found[str(path.relative_to(out))] = hashlib.sha256(str(table.to_pylist()).encode()).hexdigest()
        assert (path.parent / "report.json").exists()
    return found


def rows(out: Path) -> int:
    """Of all tables."""
    return sum(pyarrow.parquet.read_metadata(path).num_rows for path in out.glob("*/frames.parquet"))
