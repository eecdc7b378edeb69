"""A CSV file with one row per frame."""

import csv
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

from steadyseg.app.video.report import FrameFigures
from steadyseg.core.classes import ClassList

VERSION = "3"
"""Version of the columns and their meaning, stored in the report of a batch's video as `frames_version`."""
COLUMNS = (
    *("video", "frame", "time_s", "confidence", "entropy", "disagreement"),
    *("familiarity", "expected_accuracy", "verdict", "wall_ms"),
)


class FrameTable(AbstractContextManager["FrameTable"]):
    """A context manager that writes the figures of every frame into `frames.csv`, and a share of the pixels for each
    class. Times are in seconds, all else are shares; only the column `wall_ms` differs from run to run."""

    def __init__(self, folder: Path, video: str, classes: ClassList) -> None:
        self._video, self._file = video, (folder / "frames.csv").open("w", newline="", encoding="utf-8")
        self._rows = csv.writer(self._file)
        self._rows.writerow([*COLUMNS, *classes.names])

    def add(self, frame: FrameFigures) -> None:
        """Adds a row."""
        values: dict[str, Any] = vars(frame) | {"video": self._video, "frame": frame.index}
        self._rows.writerow([*map(values.get, COLUMNS), *frame.class_shares.tolist()])

    def __exit__(self, *_: object) -> None:
        self._file.close()
