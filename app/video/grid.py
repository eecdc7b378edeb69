"""`steadyseg video --grid`: several methods on the same frames in one video, with time and uncertainty of each."""

import contextlib
from collections.abc import Generator, Sequence
from dataclasses import replace
from itertools import islice
from typing import Any

import numpy as np

from steadyseg.app.console import METRIC_WORDS, Console, figure_table, track
from steadyseg.app.executors import RunOptions
from steadyseg.app.open_model import is_graph, make_segmenter, open_model
from steadyseg.app.opencv import opencv
from steadyseg.app.report_file import check_place, write_json
from steadyseg.app.sources.open_source import open_source
from steadyseg.app.sources.read_ahead import read_ahead
from steadyseg.app.sources.source import Source, describe_losses
from steadyseg.app.video.flags import VideoJob
from steadyseg.app.video.job import check_job, needs_probs, open_sink, shown_classes
from steadyseg.app.video.legend import Legend
from steadyseg.app.video.report import StreamReport
from steadyseg.app.video.stream_sink import StreamSink
from steadyseg.app.video.verdict import figure, frame_level, stream_level
from steadyseg.app.video.views import SCALES, draw_map, draw_segmentation
from steadyseg.core.classes import ClassList
from steadyseg.core.errors import InputError
from steadyseg.core.frame import Frame, Maps
from steadyseg.core.method import MODE_NAMES, ModeName, mode_title
from steadyseg.core.seeds import seed_masks
from steadyseg.core.segmenter import Segmenter, StageClock
from steadyseg.core.system.interrupts import uninterrupted

MIN_CELL = 320
"""Pictures are drawn at half their size, unless they were then narrower than this many pixels."""
CAPTION = 22
"""Height in pixels of a cell's line of text."""


class Column:
    """One method: its segmenter, its times and its report."""

    def __init__(self, mode: ModeName, segmenter: Segmenter, classes: ClassList) -> None:
        self.mode, self.segmenter, self.classes = mode, segmenter, classes
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

    def draw(self, frame: Frame, maps: Maps, size: tuple[int, int]) -> np.ndarray:
        """A line of text, below it the overlay, below it the uncertainty: (CAPTION + 2 h, w, 3) uint8 RGB."""
        cv2, (height, width) = opencv(), size
        overlay = draw_segmentation(frame.image, maps, self.classes.palette())
        pictures = [overlay, draw_map(maps, "uncertainty")]
        small = [cv2.resize(picture, (width, height), interpolation=cv2.INTER_AREA) for picture in pictures]
        caption = np.zeros((CAPTION, width, 3), np.uint8)
        milliseconds = self.clock.samples["frame"][-1]
        uncertainty = figure(frame_level(maps), maps.entropy.mean() / 255, ".3f")
        words = f"{self.mode}  {milliseconds:.0f} ms  uncertainty {uncertainty}  flicker {self.flicker:.1%}"
        cv2.putText(caption, words, (6, CAPTION - 7), cv2.FONT_HERSHEY_SIMPLEX, 0.45, (255, 255, 255), 1, cv2.LINE_AA)
        return np.concatenate([caption, *small])


def run_grid(job: VideoJob) -> int:
    """Segments one source by every method of --grid, and writes one video. Ctrl-C leaves a playable file; exit code
    130."""
    check_place(job.report, overwrite=job.overwrite)
    check_job(job)
    modes = read_modes(job)
    opened = [open_method(job, mode) for mode in modes]
    columns = [Column(mode, one, shown_classes(job.options, one)) for mode, one in zip(modes, opened, strict=True)]
    with open_source(job.source, labels=job.labels, classes=columns[0].segmenter.classes) as source:
        total = min(filter(None, (source.info.length, job.options.max_frames)), default=None)
        broken_off: InputError | OSError | KeyboardInterrupt | None = None
        try:
            with contextlib.closing(compared(job, source, columns)) as frames:
                for _ in track(frames, "frames", total):
                    pass
        except (InputError, OSError, KeyboardInterrupt) as error:  # the earlier frames are still reported
            broken_off = error
        if not columns[0].report.frames and not isinstance(broken_off, KeyboardInterrupt):
            unread = f"{source.info.name}: none of its frames could be read ({describe_losses(source.losses)})"
            raise broken_off or InputError(unread)
        methods = {column.mode: column.report.record(column.segmenter, source, source.info.notes) for column in columns}
    for column in columns:
        methods[column.mode] |= column.clock.summary()["frame"] if column.clock.samples else {}
        methods[column.mode] |= {"flicker": column.flicker_sum / max(1, column.report.frames - 1)}
    if job.report:
        write_json(job.report, {"source": source.info.name, "methods": methods})
    print_methods(methods)
    if isinstance(broken_off, KeyboardInterrupt):
        return 130
    if broken_off:
        raise broken_off
    return 0


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
    seed_masks(0)  # the dropout masks, so that results repeat
    run = RunOptions(**vars(job.options.compute), size=job.options.size, keep_probs=needs_probs(job))
    return make_segmenter(open_model(job.options.model), options, run)


def compared(job: VideoJob, source: Source, columns: Sequence[Column]) -> Generator[Frame, None, None]:
    """Yields every frame after its picture was written. Closing the generator finishes the video."""
    halved = source.info.width // 2 if source.info.width // 2 >= MIN_CELL else source.info.width
    width = halved // 2 * 2
    height = round(source.info.height * width / source.info.width / 2) * 2
    legend, info = Legend(columns[0].classes, (None, SCALES["uncertainty"])), source.info
    size = legend.size(width * len(columns), 2 * height + CAPTION)
    sink = open_sink(job, size, info)
    assert sink is not None
    with sink, contextlib.closing(read_ahead(source, live=isinstance(sink, StreamSink))) as frames:
        for frame in islice(frames, job.options.max_frames):
            found = [column.step(frame) for column in columns]
            with uninterrupted():
                cells = [column.draw(frame, maps, (height, width)) for column, maps in zip(columns, found, strict=True)]
                sink.write(legend.add(np.concatenate(cells, axis=1), found[0]), frame.time_s)
            yield frame


def print_methods(methods: dict[Any, dict[str, Any]]) -> None:
    """Prints a column for each method on stdout."""
    rows = {"ms": "latency_p50_ms", "confidence": "mean_confidence", "uncertainty": "mean_entropy"}
    measured = ("flicker", "nll", "accuracy", "ece")
    rows |= {METRIC_WORDS.get(key, key): key for key in measured if all(key in one for one in methods.values())}
    table = figure_table("", *map(mode_title, methods), title="the methods on the same frames")
    table.columns[0].no_wrap = True
    for words, key in rows.items():
        levels = (stream_level(record) * key.startswith("mean_") for record in methods.values())
        shown = zip(levels, methods.values(), strict=True)
        table.add_row(words, *(figure(level, one[key], ".4g") if key in one else "-" for level, one in shown))
    Console().print(table)
