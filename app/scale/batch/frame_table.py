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

    shares = arrow.struct([(name, arrow.float32()) for name in classes.names])
    kinds = {
        "video": arrow.string(),
        "verdict": arrow.string(),
        "frame": arrow.int64(),
        "time_s": arrow.float64(),
        "class_shares": shares,
    }
    columns = [(name, kinds.get(name, arrow.float32())) for name in COLUMNS]
    return arrow.schema(columns, metadata={VERSION_KEY: VERSION})


class FrameTable(AbstractContextManager[Any]):
    """A context manager that writes the values of every frame into a Parquet file."""

    def __init__(self, path: Path, video: str, classes: ClassList) -> None:
        import pyarrow.parquet

        self._arrow, self._video, self._names = pyarrow, video, classes.names
        self._schema = schema_of(classes)
        self._rows: list[dict[str, Any]] = []
        self._writer = pyarrow.parquet.ParquetWriter(path, self._schema, compression="zstd")

    def add(self, frame: FrameFigures) -> None:
        """Adds a row."""
        shares = dict(zip(self._names, frame.class_shares.tolist(), strict=True))
        self._rows.append(vars(frame) | {"video": self._video, "frame": frame.index, "class_shares": shares})
        if len(self._rows) == ROWS_A_GROUP:
            self._flush()

    def _flush(self) -> None:
        self._writer.write_table(self._arrow.Table.from_pylist(self._rows, self._schema))
        self._rows.clear()

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        try:
            if error is None:
                self._flush()
        finally:
            self._writer.close()


class CsvTable(AbstractContextManager[Any]):
    """The same as a CSV file: the classes are columns in place of `class_shares`."""

    def __init__(self, path: Path, video: str, classes: ClassList) -> None:
        self._file, self._video = path.open("w", newline="", encoding="utf-8"), video
        self._writer = csv.writer(self._file)
        self._columns = [name for name in COLUMNS if name != "class_shares"]
        self._writer.writerow([*self._columns, *classes.names])

    def add(self, frame: FrameFigures) -> None:
        """Adds a row."""
        values = vars(frame) | {"video": self._video, "frame": frame.index}
        self._writer.writerow([*(values[name] for name in self._columns), *frame.class_shares.tolist()])

    def __exit__(self, *_: object) -> None:
        self._file.close()


def frame_table(folder: Path, video: str, classes: ClassList) -> FrameTable | CsvTable:
    """Opens frames.parquet in the folder, or frames.csv where pyarrow is not installed."""
    if find_spec("pyarrow"):
        return FrameTable(folder / "frames.parquet", video, classes)
    return CsvTable(folder / "frames.csv", video, classes)
