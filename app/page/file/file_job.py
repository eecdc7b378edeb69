"""Segmentation of a file for the page: progress and preview while it runs, then video or picture, masks and report."""

import base64
import contextlib
import time
import zipfile
from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from steadyseg.app.opencv import opencv
from steadyseg.app.page.parts.network_pool import Lease, NetworkPool, OpenMethod
from steadyseg.app.page.parts.pictures import jpeg, overlay_picture, second_picture
from steadyseg.app.page.parts.settings import Settings, model_meta
from steadyseg.app.report_file import write_json
from steadyseg.app.sources.image_folder import IMAGE_SUFFIXES
from steadyseg.app.sources.open_source import open_source
from steadyseg.app.sources.source import SourceInfo
from steadyseg.app.video.legend import Legend
from steadyseg.app.video.recording import Recording
from steadyseg.app.video.render import conformal_threshold, draw_banner
from steadyseg.app.video.report import StreamReport
from steadyseg.app.video.sinks import TABLE, Sink, WriteMasks, class_table, mask_files
from steadyseg.app.video.video_writer import VideoSink
from steadyseg.app.video.views import SCALES
from steadyseg.core.classes import CAMVID, ClassList
from steadyseg.core.errors import InputError
from steadyseg.core.frame import Frame, Maps
from steadyseg.core.model.checkpoint import CheckpointMeta
from steadyseg.core.options import Every
from steadyseg.core.segmenter import Segmenter
from steadyseg.core.system.machine import trim_memory

STREET = "street:7:150"
"""Six seconds of the synthetic street. Its labels are known, so the report has accuracy and calibration error."""
WIDEST = 1920
"""Largest width or height in pixels of the two views together; every H.264 player takes up to 4096."""
PREVIEW_WIDTH = 960
REPORT_EVERY_S = 0.5
NAME_LENGTH = 40
"""Characters kept of the upload's name: file systems end at 255 bytes, and the partial video has a longer name."""
MAX_VIDEO_PIXELS, MAX_SECONDS = 4096 * 2304, 3600
MAX_FRAMES, MAX_MASKS = 108_000, 20_000
"""Limits of a video on the page; the command `steadyseg video` has none, since no visitor waits for it. A file may
announce up to 1000 frames/s, so an hour has at most as many frames as at 30 frames/s. With masks there are two files a
frame, and the archive keeps a list of them in memory."""


@dataclass(frozen=True)
class Progress:
    """The progress of a job."""

    done: int
    total: int | None
    seconds: float
    preview: str | None = None
    """Data URL of the newest picture; nothing is written to disk for it."""
    metrics: dict[str, Any] | None = None
    """Metrics so far, if the source has labels."""

    def html(self) -> str:
        """A bar, the count, the speed and the remaining time."""
        text = f"{self.done} of {self.total or '?'} frames" if self.done else "opening ..."
        rate = self.done / self.seconds if self.seconds else 0.0
        if rate:
            text += f" · {rate:.1f} frames/s"
        if rate and self.total:
            text += f" · {max(self.total - self.done, 0) / rate:.0f} s left"
        share = f" value='{self.done}' max='{self.total}'" if self.total else ""
        return f"<progress{share}></progress>{text}"


@dataclass(frozen=True)
class Result:
    """The files and metrics of a finished job; either `video` or `picture` is set."""

    video: Path | None
    picture: Path | None
    masks: Path | None
    report: Path
    record: dict[str, Any]
    metrics: dict[str, Any] | None
    stopped: str
    """The reason why the job ended early; empty if it is complete."""


def segment_file(
    spec: str,
    settings: Settings,
    folder: Path,
    pool: NetworkPool,
    stop_reason: Callable[[], str],
    *,
    keep_masks: bool = False,
    every: Every = 1,
) -> Iterator[Progress | Result]:
    """Yields progress twice a second and the result at the end; frames done before a stop are kept.

    `spec` is a file or the street. `stop_reason` returns an empty text until the job should stop, then the reason.
    `every`: the frames that the network runs on. Closing the generator frees reader and encoder. Raises InputError in
    one line that names no folder of this machine.
    """
    try:
        with Lease(pool) as lease:
            yield from _segment_file(spec, settings, folder, lease, stop_reason, keep_masks, every)
    except InputError as error:
        raise InputError(str(error).replace(spec, Path(spec).name).replace(f"{folder}/", "")) from error
    finally:
        trim_memory()


def _segment_file(
    spec: str,
    settings: Settings,
    folder: Path,
    lease: Lease,
    stop_reason: Callable[[], str],
    keep_masks: bool,
    every: Every,
) -> Iterator[Progress | Result]:
    yield Progress(0, None, 0.0)
    meta = model_meta(settings.method.model)
    segmenter = open_checked(spec, settings, meta, lease, every)
    still = Path(spec).suffix.lower() in IMAGE_SUFFIXES
    name = "street" if spec == STREET else Path(spec).stem[:NAME_LENGTH]
    output, report_file = folder / f"{name}-segmented.{'png' if still else 'mp4'}", folder / f"{name}-report.json"
    zipped = folder / f"{name}-masks.zip" if keep_masks else None
    with contextlib.ExitStack() as opened:
        source = opened.enter_context(open_source(spec, classes=segmenter.classes, max_pixels=MAX_VIDEO_PIXELS))
        limit = check_length(source.info, keep_masks)
        masks = None
        if zipped:  # uncompressed, since PNGs are compressed
            archive = opened.enter_context(zipfile.ZipFile(zipped, "w", zipfile.ZIP_STORED))
            masks = mask_archive(archive, meta.classes)
        paint = PagePainter(settings, meta, segmenter)
        info = source.info
        sink: Sink = PictureSink(output)
        if not still:
            sink = VideoSink(output, *paint.size(info), info.fps, pixel_shape=info.pixel_shape)
        recording = opened.enter_context(Recording(source, segmenter, sink, paint, masks, limit))
        stopped = yield from _run(recording, paint, limit, stop_reason)
    report = recording.report
    if not report.frames:
        raise InputError(f"{spec}: none of its frames could be read; is it damaged?")
    record = {"source": Path(spec).name, "output": output.name, **recording.record()}
    write_json(report_file, record)
    video, picture = (None, output) if still else (output, None)
    yield Result(video, picture, zipped, report_file, record, metrics_so_far(report), stopped)


def _run(
    recording: Recording, paint: "PagePainter", limit: int, stop_reason: Callable[[], str]
) -> Generator[Progress, None, str]:
    """Takes all frames; returns the reason if it stopped before their end."""
    began = reported = time.perf_counter()
    report, length = recording.report, recording.source.info.length
    for _ in recording:
        if reason := stop_reason():
            return reason
        if time.perf_counter() - reported > REPORT_EVERY_S:
            reported = time.perf_counter()
            yield Progress(report.frames, length, reported - began, paint.preview(), metrics_so_far(report))
        if report.frames == limit and recording.has_more():
            return f"stopped after {limit} frames, the most on this page"
    return ""


class PagePainter:
    """Draws both pictures of a frame side by side with their legend, as the controls ask, and keeps the newest
    picture."""

    def __init__(self, settings: Settings, meta: CheckpointMeta, segmenter: Segmenter) -> None:
        self._view, self._method, self._meta = settings.view, segmenter.method, meta
        self._data = segmenter.training_data
        self._legend = Legend(meta.classes, (None, SCALES[settings.view.second]))
        self._newest: np.ndarray | None = None
        self._drawn = self._written = (0, 0)
        """Size of the drawn picture of the announced video, and of the picture that is written."""

    def __call__(self, frame: Frame, maps: Maps) -> np.ndarray:
        left = draw_banner(overlay_picture(frame, maps, self._meta.classes, self._view), maps, self._data)
        both = np.hstack((left, second_picture(maps, self._view.second, self._meta, self._method)))
        self._newest = picture = self._legend.add(both, maps)
        if picture.shape[1::-1] != self._drawn:
            return picture
        return opencv().resize(picture, self._written, interpolation=opencv().INTER_AREA)

    def size(self, info: SourceInfo) -> tuple[int, int]:
        """(width, height) of the pictures, both even and at most `WIDEST`."""
        self._drawn = width, height = self._legend.size(2 * info.width, info.height)
        scale = min(1.0, WIDEST / max(width, height))
        self._written = 2 * max(1, round(width * scale / 2)), 2 * max(1, round(height * scale / 2))
        return self._written

    def preview(self) -> str | None:
        """The newest picture as a data URL."""
        if self._newest is None:
            return None
        height, width = self._newest.shape[:2]
        scale = min(1.0, PREVIEW_WIDTH / width)
        size = (max(1, round(width * scale)), max(1, round(height * scale)))
        small = opencv().resize(self._newest, size, interpolation=opencv().INTER_AREA)
        return "data:image/jpeg;base64," + base64.b64encode(jpeg(small)).decode("ascii")


def open_checked(spec: str, settings: Settings, meta: CheckpointMeta, lease: Lease, every: Every) -> Segmenter:
    """The segmenter of a job. Raises InputError for settings that the model or the file cannot fulfil."""
    sets = settings.view.second == "set-size"
    if sets:
        method = settings.method.options.resolve(meta)
        conformal_threshold(meta.fit_in_use(method), method)
    segmenter = OpenMethod(settings.method, lease, every).segmenter
    segmenter.keep_probs = sets or spec == STREET
    if spec == STREET and segmenter.classes.names != CAMVID.names:
        raise InputError("the street is labelled with CamVid's 11 classes and this model has others; upload a video")
    return segmenter


def metrics_so_far(report: StreamReport) -> dict[str, Any] | None:
    """The metrics so far; None without labels."""
    return report.metrics.result() if report.metrics and report.metrics.measurable else None


def check_length(info: SourceInfo, keep_masks: bool) -> int:
    """Returns the page's limit of frames for this video. Raises InputError if it announces more."""
    limit = min(round(MAX_SECONDS * info.fps), MAX_MASKS if keep_masks else MAX_FRAMES)
    if info.length is not None and info.length > limit:
        raise InputError(
            f"{info.name}: has {info.length} frames, and this page takes {limit} of it"
            f"{' with masks' if keep_masks else ''}; cut it, or use steadyseg video"
        )
    return limit


def mask_archive(archive: zipfile.ZipFile, classes: ClassList) -> WriteMasks:
    """Returns a function that writes the masks of a frame straight into the archive, after the table of classes."""
    archive.writestr(TABLE, class_table(classes))

    def write(maps: Maps, name: str) -> None:
        for file, data in mask_files(maps, name, classes):
            archive.writestr(file, data)

    return write


class PictureSink(contextlib.AbstractContextManager[Any]):
    """Writes one picture as a PNG file."""

    notes: tuple[str, ...] = ()

    def __init__(self, path: Path) -> None:
        self._path = path

    def write(self, image: np.ndarray, time_s: float) -> None:
        self._path.write_bytes(opencv().imencode(".png", image[..., ::-1])[1].tobytes())

    def __exit__(self, *_: object) -> None: ...
