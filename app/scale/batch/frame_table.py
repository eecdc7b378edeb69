"""A Parquet file with one row per frame, whose schema carries a version; without pyarrow a CSV file."""

import csv
from contextlib import AbstractContextManager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from steadyseg.app.video.report import FrameFigures
from steadyseg.core.classes import ClassList

VERSION = "2"
"""Version of the columns and their meaning, stored in the schema's metadata under `VERSION_KEY`."""
VERSION_KEY = "steadyseg_frames"
COLUMNS = (
    *("video", "frame", "time_s", "confidence", "entropy", "disagreement", "class_shares"),
    *("familiarity", "expected_accuracy", "verdict", "wall_ms"),
)
ROWS_A_GROUP = 4096
"""Rows held in memory before they are written: 1 MB with 11 classes."""


def schema_of(classes: ClassList) -> Any:
    """The `pyarrow.Schema`: times in seconds, all else shares; only the column `wall_ms` differs from run to run."""
    import pyarrow as arrow

    text, shares = arrow.string(), arrow.struct([(name, arrow.float32()) for name in classes.names])
    kinds = {"video": text, "verdict": text, "frame": arrow.int64(), "time_s": arrow.float64(), "class_shares": shares}
    columns = [(name, kinds.get(name, arrow.float32())) for name in COLUMNS]
    return arrow.schema(columns, metadata={VERSION_KEY: VERSION})


class FrameTable(AbstractContextManager[Any]):
    """A context manager that writes the values of every frame into frames.parquet, or into frames.csv where pyarrow is
    not installed. In the CSV file the classes are columns in place of `class_shares`."""

    def __init__(self, folder: Path, video: str, classes: ClassList) -> None:
        self._video, self._names = video, classes.names
        self._rows: list[dict[str, Any]] = []
        if find_spec("pyarrow"):
            import pyarrow.parquet

            self._table, self._schema = pyarrow.Table, schema_of(classes)
            self._file = pyarrow.parquet.ParquetWriter(folder / "frames.parquet", self._schema, compression="zstd")
        else:
            self._table, self._file = None, (folder / "frames.csv").open("w", newline="", encoding="utf-8")
            self._columns = [name for name in COLUMNS if name != "class_shares"]
            csv.writer(self._file).writerow([*self._columns, *self._names])

    def add(self, frame: FrameFigures) -> None:
        """Adds a row."""
        shares = dict(zip(self._names, frame.class_shares.tolist(), strict=True))
        self._rows.append(vars(frame) | {"video": self._video, "frame": frame.index, "class_shares": shares})
        if len(self._rows) == ROWS_A_GROUP:
            self._flush()

    def _flush(self) -> None:
        if self._table:
            self._file.write_table(self._table.from_pylist(self._rows, self._schema))
        else:
            values = ([*map(row.get, self._columns), *row["class_shares"].values()] for row in self._rows)
            csv.writer(self._file).writerows(values)
        self._rows.clear()

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        try:
            if error is None:
                self._flush()
        finally:
            self._file.close()
