"""A file through the segmenter for the page: progress while it runs, then a video or picture and the report."""

import contextlib
import time
from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import numpy as np

from app.folder_source import IMAGE_SUFFIXES
from app.opencv import opencv
from app.page_settings import Settings
from app.process import process
from app.render import rendered_size
from app.report_file import write_json
from app.sinks import Sink, VideoSink
from app.source_info import Source, SourceInfo
from app.sources import open_source
from app.video_report import StreamReport
from core.classes import CAMVID
from core.errors import InputError
from core.segmenter import Segmenter

STREET = "street:7:150"
"""Six seconds of the procedural street: it knows its labels, so its report has accuracy and calibration error."""
WIDEST = 1920
"""Pixels a side of the two views together: what a page shows, and well inside the 4096 that every H.264 player takes."""
TELL_EVERY_S = 0.25
NAME_LENGTH = 40
"""Characters kept of the upload's name: file systems end at 255 bytes, and the video is first written under a longer one."""


@dataclass(frozen=True)
class Progress:
    """How far a job is."""

    done: int
    total: int | None
    seconds: float

    def html(self) -> str:
        """A bar, the count, the speed and the time that is left."""
        text = f"{self.done} of {self.total or '?'} frames"
        rate = self.done / self.seconds if self.seconds else 0.0
        if rate:
            text += f" · {rate:.1f} frames/s"
        if rate and self.total:
            text += f" · {max(self.total - self.done, 0) / rate:.0f} s left"
        share = f" value='{self.done}' max='{self.total}'" if self.total else ""
        return f"<progress{share}></progress>{text}"


@dataclass(frozen=True)
class Result:
    """What a job leaves behind; one of `video` and `picture` is there."""

    video: Path | None
    picture: Path | None
    report: Path
    record: dict[str, Any]
    stopped: bool


def segment_file(
    spec: str, settings: Settings, folder: Path, stop_asked: Callable[[], bool]
) -> Iterator[Progress | Result]:
    """Yields progress a few times a second and the result at last; what is done until a stop is kept.

    `spec` is a file or the street. Closing the generator frees reader and encoder. Raises InputError, one line without
    this machine's folders.
    """
    try:
        yield from _segment_file(spec, settings, folder, stop_asked)
    except InputError as error:
        raise InputError(str(error).replace(spec, Path(spec).name)) from error


def _segment_file(
    spec: str, settings: Settings, folder: Path, stop_asked: Callable[[], bool]
) -> Iterator[Progress | Result]:
    yield Progress(0, None, 0.0)
    segmenter = settings.open_segmenter(keep_probs=True)
    check_labels(spec, segmenter)
    still = Path(spec).suffix.lower() in IMAGE_SUFFIXES
    name = "street" if spec == STREET else Path(spec).stem[:NAME_LENGTH]
    output, report_file = folder / f"{name}-segmented.{'png' if still else 'mp4'}", folder / f"{name}-report.json"
    with open_source(spec, classes=segmenter.classes) as source:
        sink: Sink = PictureSink(output) if still else VideoSink(output, *fitted_size(source.info), source.info.fps)
        report = StreamReport(segmenter, source)
        stopped = yield from _run(source, sink, report, stop_asked)
    if not report.frames:
        raise InputError(f"{spec}: none of its frames could be read; is it damaged?")
    record = {"source": Path(spec).name, "output": output.name, **report.record(sink.notes)}
    write_json(report_file, record)
    yield Result(None if still else output, output if still else None, report_file, record, stopped)


def _run(
    source: Source, sink: Sink, report: StreamReport, stop_asked: Callable[[], bool]
) -> Generator[Progress, None, bool]:
    """The loop; returns whether it was stopped."""
    began = told = time.perf_counter()
    with contextlib.closing(process(source, report, sink, "side-by-side")) as frames:
        for _ in frames:
            if stop_asked():
                return True
            if time.perf_counter() - told > TELL_EVERY_S:
                told = time.perf_counter()
                yield Progress(report.frames, source.info.length, told - began)
    return False


def check_labels(spec: str, segmenter: Segmenter) -> None:
    """Raises InputError where the street's labels would be measured against other classes."""
    if spec == STREET and segmenter.classes.names != CAMVID.names:
        raise InputError("the street is labelled with CamVid's 11 classes and this model has others; upload a video")


def fitted_size(info: SourceInfo) -> tuple[int, int]:
    """(width, height) of both views side by side, reduced to at most `WIDEST` a side."""
    width, height = rendered_size("side-by-side", info.width, info.height)
    scale = min(1.0, WIDEST / max(width, height))
    return max(1, round(width * scale)), max(1, round(height * scale))


class PictureSink:
    """A PNG file of the one picture that it is given."""

    notes: tuple[str, ...] = ()

    def __init__(self, path: Path) -> None:
        self._path = path

    def write(self, image: np.ndarray, time_s: float) -> None:
        self._path.write_bytes(opencv().imencode(".png", image[..., ::-1])[1].tobytes())

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...
