"""`steadyseg video --grid`: several methods on the same frames in one video, with time and uncertainty of each."""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from steadyseg.app.console import METRIC_WORDS, Console, figure_table
from steadyseg.app.open_model import is_graph
from steadyseg.app.opencv import opencv
from steadyseg.app.video.flags import VideoJob
from steadyseg.app.video.job import open_for, shown_classes
from steadyseg.app.video.recording import Recording
from steadyseg.app.video.report import StreamReport
from steadyseg.app.video.views import Painter, draw_map, draw_segmentation
from steadyseg.core.errors import InputError
from steadyseg.core.frame import Frame, Maps
from steadyseg.core.method import MODE_NAMES, ModeName, mode_title
from steadyseg.core.segmenter import Segmenter, StageClock

MIN_CELL = 320
"""Pictures are drawn at half their size, unless they were then narrower than this many pixels."""
CAPTION = 22
"""Height in pixels of a cell's line of text."""


class Column:
    """One method: its segmenter, its times and its report."""

    def __init__(self, mode: ModeName, segmenter: Segmenter) -> None:
        self.mode, self.segmenter = mode, segmenter
        self._label: np.ndarray | None = None
        self.flicker = self.flicker_sum = 0.0
        """Share of the labels that changed since the frame before; 0 for the first."""
        self.report, self.clock = StreamReport(segmenter.classes), StageClock()

    def step(self, frame: Frame) -> Maps:
        """Computes a frame and measures the time."""
        with self.clock.measure("frame"):
            maps = self.segmenter.step(frame)
        self.report.update(frame, maps)
        if self._label is not None and self._label.shape == maps.label.shape:
            self.flicker = float((self._label != maps.label).mean())
            self.flicker_sum += self.flicker
        self._label = maps.label
        return maps

    def draw(self, frame: Frame, maps: Maps, palette: np.ndarray, size: tuple[int, int]) -> np.ndarray:
        """A line of text, below it the overlay, below it the uncertainty: (CAPTION + 2 h, w, 3) uint8 RGB."""
        cv2, (height, width) = opencv(), size
        pictures = [draw_segmentation(frame.image, maps, palette), draw_map(maps, "uncertainty")]
        small = [cv2.resize(picture, (width, height), interpolation=cv2.INTER_AREA) for picture in pictures]
        caption = np.zeros((CAPTION, width, 3), np.uint8)
        milliseconds = self.clock.samples["frame"][-1]
        uncertainty = maps.entropy.mean() / 255
        words = f"{self.mode}  {milliseconds:.0f} ms  uncertainty {uncertainty:.3f}  flicker {self.flicker:.1%}"
        cv2.putText(caption, words, (6, CAPTION - 7), cv2.FONT_HERSHEY_SIMPLEX, 0.45, (255, 255, 255), 1, cv2.LINE_AA)
        return np.concatenate([caption, *small])


class Grid(Painter):
    """Several methods on the same frames, with a column of pictures for each."""

    def __init__(self, job: VideoJob) -> None:
        """Raises InputError for a wrong --grid, and for flags that do not go with it."""
        self.columns = [Column(mode, open_method(job, mode)) for mode in read_modes(job)]
        classes = shown_classes(job.options, self.columns[0].segmenter)
        super().__init__("side-by-side", classes, legend=job.options.legend)
        self._maps: list[Maps] = []
        self._cell = (0, 0)

    def steps(self, frames: Iterable[Frame]) -> Iterator[tuple[Frame, Maps]]:
        """Yields every frame with the maps of the first method, after all methods have computed it."""
        for frame in frames:
            self._maps = [column.step(frame) for column in self.columns]
            yield frame, self._maps[0]

    def size(self, width: int, height: int) -> tuple[int, int]:
        """(width, height) of the picture of a frame of this size."""
        cell_width = (width // 2 if width // 2 >= MIN_CELL else width) // 2 * 2
        self._cell = (round(height * cell_width / width / 2) * 2, cell_width)
        size = (cell_width * len(self.columns), 2 * self._cell[0] + CAPTION)
        return self._legend.size(*size) if self._legend else size

    def _picture(self, frame: Frame, maps: Maps) -> np.ndarray:
        found = zip(self.columns, self._maps, strict=True)
        return np.hstack([column.draw(frame, its, self._palette, self._cell) for column, its in found])

    def record(self, recording: Recording) -> dict[str, Any]:
        """The report as JSON values: figures of each method, its time a frame and its flicker."""
        source, methods = recording.source, dict[str, Any]()
        for column in self.columns:
            report = column.report
            record = report.record(column.segmenter, source, recording.notes) | column.clock.summary().get("frame", {})
            methods[column.mode] = record | {"flicker": column.flicker_sum / max(1, report.frames - 1)}
        return {"source": source.info.name, "methods": methods}


def read_modes(job: VideoJob) -> tuple[ModeName, ...]:
    """The methods that --grid names; InputError for another word, and for flags that do not go with --grid."""
    found = tuple(mode for word in (job.grid or "").split(",") for mode in MODE_NAMES if mode == word)
    if len(found) != len((job.grid or "").split(",")) or len(set(found)) != len(found):
        raise InputError(f"--grid takes methods between commas, each once, of {','.join(MODE_NAMES)}; got {job.grid!r}")
    options = job.options
    for flag, given in {
        "--mode": options.method.mode is not None,
        "--lag": bool(options.method.lag),
        "--masks": job.masks is not None,
        "--show": job.show,
        f"--view {options.view}": options.view != "overlay",
    }.items():
        if given:
            raise InputError(f"{flag} is for one method and --grid shows several; omit one of them")
    if job.output is None:
        raise InputError("--grid makes a video: name its file by -o out.mp4")
    if is_graph(options.model):
        raise InputError(f"{options.model}: a graph file has one method; give the checkpoint to --grid")
    return found


def open_method(job: VideoJob, mode: ModeName) -> Segmenter:
    """The segmenter of a mode; settings that the mode does not have are left out."""
    method = job.options.method
    temporal = mode.startswith("vq-")
    options = replace(
        method,
        mode=mode,
        tau=method.tau if temporal else None,
        motion=method.motion if temporal else None,
        samples=method.samples if mode == "bnn" else None,
        calibrated=False if method.calibrated is False else None,
    )
    return open_for(replace(job, options=replace(job.options, method=options)))


def print_methods(record: dict[str, Any]) -> None:
    """Prints a column for each method on stdout."""
    methods = record["methods"]
    rows = {"ms": "latency_p50_ms", "confidence": "mean_confidence", "uncertainty": "mean_entropy"}
    measured = ("flicker", "nll", "accuracy", "ece")
    rows |= {METRIC_WORDS.get(key, key): key for key in measured if all(key in one for one in methods.values())}
    table = figure_table("", *map(mode_title, methods), title="the methods on the same frames")
    table.columns[0].no_wrap = True
    for words, key in rows.items():
        table.add_row(words, *(f"{one[key]:.4g}" if key in one else "-" for one in methods.values()))
    Console().print(table)
