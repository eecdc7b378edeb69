"""Accuracy, mIoU and ECE of each recording, with confidence intervals from groups of neighbouring images."""

import math
from itertools import groupby
from typing import Any

from steadyseg.app.console import Console, figure_table
from steadyseg.app.evaluation.data import EvaluationFrames
from steadyseg.core.classes import ClassList
from steadyseg.core.evaluation.stretches import Stretches, count_stretch, split_evenly
from steadyseg.core.frame import Frame, Maps
from steadyseg.seg.data.held_out import recording_of
from steadyseg.seg.evaluate import FrameMetrics

STRETCH = 10
"""Images of a block: 10 s of CamVid's stills, 0.7 s of its stream."""
ALL = "all"
KEYS = ("accuracy", "miou", "ece")


class RecordingMetrics:
    """Metrics of the blocks of each recording, about `STRETCH` neighbouring images in a block."""

    def __init__(self, chosen: EvaluationFrames, classes: ClassList) -> None:
        self.chosen = chosen
        self.stretches: list[tuple[str, FrameMetrics]] = []
        self._stretch_of: list[int] = []
        for recording, names in groupby(chosen.names, recording_of):
            for length in split_evenly(len(list(names)), STRETCH):
                self._stretch_of += [len(self.stretches)] * length
                self.stretches.append((recording, FrameMetrics.of(classes)))

    def update(self, place: int, frame: Frame, maps: Maps) -> None:
        """Adds the place-th frame."""
        self.stretches[self._stretch_of[self.chosen.place_of_name(place)]][1].update(frame, maps)

    def result(self) -> dict[str, dict[str, Any]]:
        """Accuracy, mIoU and ECE of each recording and of all, as (value, lower, upper), and the number of blocks.

        Blocks without a labelled pixel do not count. The ends of a single block's interval are None.
        """
        counts = [(name, count_stretch(one.metrics)) for name, one in self.stretches if one.measurable]
        recordings = list(dict.fromkeys(name for name, _ in counts))
        of = {name: [count for other, count in counts if other == name] for name in recordings}
        if len(of) > 1:
            of[f"{ALL} recordings" if ALL in of else ALL] = [count for _, count in counts]
        rows: dict[str, dict[str, Any]] = {}
        for name, found in of.items():
            told = Stretches.read(found).intervals()
            ends = {key: tuple(None if math.isnan(one) else one for one in value) for key, value in told.items()}
            rows[name] = {"stretches": len(found), **ends}
        return rows


def print_recordings(record: dict[str, dict[str, Any]], console: Console) -> None:
    """Prints a row for each recording, in percent."""
    table = figure_table("recording", *KEYS, title="percent by recording, with 95 % intervals over stretches")
    for name, row in record.items():
        table.add_row(name, *(percent_with_interval(*row[key]) for key in KEYS))
    console.print(table)


def percent_with_interval(value: float, lower: float | None, upper: float | None) -> str:
    """0.9, 0.85, 0.95 -> 90.0 (85.0 to 95.0); without an interval (one stretch) the value alone."""
    if lower is None or upper is None:
        return f"{100 * value:.1f} (one stretch)"
    return f"{100 * value:.1f} ({100 * lower:.1f} to {100 * upper:.1f})"
