"""A Parquet file with one row per frame (pyarrow); its schema carries a version."""

from pathlib import Path
from typing import Any, Self

from steadyseg.app.video.report import FrameFigures
from steadyseg.core.classes import ClassList
from steadyseg.core.errors import InputError

VERSION = "1"
"""Version of the columns and their meaning, stored in the schema's metadata under `VERSION_KEY`."""
VERSION_KEY = "steadyseg_frames"
COLUMNS = (
    "video frame time_s confidence entropy disagreement class_shares familiarity expected_accuracy wall_ms".split()
)
ROWS_A_GROUP = 4096
"""Rows held in memory before they are written: 1 MB with 11 classes."""


def import_pyarrow() -> Any:
    """pyarrow with its Parquet part. Raises InputError with the command that installs it."""
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError as error:
        raise InputError("frames.parquet needs pyarrow: pip install 'steadyseg[scale]'") from error
    return pyarrow


def schema_of(classes: ClassList) -> Any:
    """The `pyarrow.Schema`: times in seconds, all else shares; only the column `wall_ms` differs from run to run."""
    arrow = import_pyarrow()
    shares = arrow.struct([(name, arrow.float32()) for name in classes.names])
    kinds = {"video": arrow.string(), "frame": arrow.int64(), "time_s": arrow.float64(), "class_shares": shares}
    columns = [(name, kinds.get(name, arrow.float32())) for name in COLUMNS]
    return arrow.schema(columns, metadata={VERSION_KEY: VERSION})


class FrameTable:
    """A context manager that writes the values of every frame into a Parquet file."""

    def __init__(self, path: Path, video: str, classes: ClassList) -> None:
        arrow = import_pyarrow()
        self._arrow, self._video, self._names = arrow, video, classes.names
        self._schema = schema_of(classes)
        self._rows: list[dict[str, Any]] = []
        self._writer = arrow.parquet.ParquetWriter(path, self._schema, compression="zstd")

    def add(self, frame: FrameFigures) -> None:
        """Adds a row."""
        shares = dict(zip(self._names, frame.class_shares.tolist(), strict=True))
        self._rows.append(vars(frame) | {"video": self._video, "frame": frame.index, "class_shares": shares})
        if len(self._rows) == ROWS_A_GROUP:
            self._flush()

    def _flush(self) -> None:
        self._writer.write_table(self._arrow.Table.from_pylist(self._rows, self._schema))
        self._rows.clear()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        try:
            if error is None:
                self._flush()
        finally:
            self._writer.close()
