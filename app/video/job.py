"""One source into files: the checks before any work, the segmenter, and the recording that `video` and `batch` run."""

import contextlib
import os
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator
from pathlib import Path
from typing import Any, Generic, TypeVar

from steadyseg.app.palette import display_classes
from steadyseg.app.sources.image_folder import IMAGE_SUFFIXES
from steadyseg.app.sources.open_source import is_live, is_path, is_street, open_source
from steadyseg.app.sources.source import SourceInfo, describe_losses
from steadyseg.app.sources.url import redact, require_separator
from steadyseg.app.video.flags import VideoJob, VideoOptions, check_options
from steadyseg.app.video.recording import Recording
from steadyseg.app.video.render import conformal_threshold
from steadyseg.app.video.sinks import MaskSink, Sink, check_names
from steadyseg.app.video.stream_sink import StreamSink, is_stream, require_stream
from steadyseg.app.video.verdict import percent
from steadyseg.app.video.video_writer import VideoSink
from steadyseg.app.video.views import SCALES, Painter
from steadyseg.core.classes import ClassList
from steadyseg.core.errors import InputError
from steadyseg.core.seeds import seed_masks
from steadyseg.core.segmenter import Segmenter
from steadyseg.runtime.choose import RunOptions, TakeNetwork
from steadyseg.runtime.every import default_every
from steadyseg.runtime.networks import FrameNetwork
from steadyseg.runtime.open_model import make_segmenter, open_model, resolve_method

MAX_KEPT = 4
"""Compiled networks that are kept: folders of photographs switch between two or three sizes. A network takes seconds to
compile and 40 MB to keep."""
T = TypeVar("T")


class Recent(OrderedDict[Hashable, T], Generic[T]):
    """A cache for one thread; beyond `MAX_KEPT` values, the least recently used value makes room for a new value."""

    def take(self, key: Hashable, make: Callable[[], T]) -> T:
        """The cached value of a key, or a new value."""
        if key not in self:
            self[key] = make()
        self.move_to_end(key)
        while len(self) > MAX_KEPT:
            self.popitem(last=False)
        return self[key]


def check_job(job: VideoJob) -> None:
    """Raises InputError, before any work, for a job that cannot be done."""
    check_options(job.options)
    if is_path(job.source) and not os.path.exists(job.source):
        open_source(job.source)  # refuses what is not there before a network is opened
    if job.output:
        require_separator(job.output)
    if job.output and is_stream(job.output):
        require_stream(job.output)
    refuse_own_input(job)


def refuse_own_input(job: VideoJob) -> None:
    """Raises InputError if --overwrite would replace an input: masks get the names of frames and images."""
    is_image = Path(job.source).suffix.lower() in IMAGE_SUFFIXES
    for written, read in (
        (job.output, job.source),
        (job.masks, os.path.dirname(job.source) or "." if is_image else job.source),
    ):
        if written and read and os.path.exists(written) and os.path.exists(read) and os.path.samefile(written, read):
            raise InputError(f"{written}: would be written over while it is read; choose another place")


def needs_probs(job: VideoJob) -> bool:
    """True if the job reads mean probabilities: for metrics of the street, or for sizes of prediction sets."""
    return is_street(job.source) or job.options.view == "set-size"


def open_for(job: VideoJob, take: TakeNetwork | None = None) -> Segmenter:
    """Opens the segmenter that the job's options describe.

    `take` returns the compiled network of a frame size, which it may keep from an earlier call. By default a few sizes
    are kept, since folders and streams may switch between sizes.
    """
    options = job.options
    seed_masks(0)  # so that results repeat
    model = open_model(options.model)
    method = resolve_method(model, options.method)
    every = default_every(is_live(job.source), method) if options.every is None else options.every
    run = RunOptions(**vars(options.compute), size=options.size, keep_probs=needs_probs(job), every=every)
    segmenter = make_segmenter(model, options.method, run, take or Recent[FrameNetwork]().take)
    return segmenter


@contextlib.contextmanager
def open_recording(job: VideoJob, segmenter: Segmenter) -> Iterator[Recording]:
    """Opens and checks everything for one source into files, before its first frame.

    After an interruption, a camera's failure or a full disk, playable files and a report of the earlier frames remain.
    `broken_off` has the reason. Raises InputError if no frame could be read.
    """
    options = job.options
    classes = display_classes(segmenter.classes)
    paint = open_painter(options, segmenter, classes)
    with open_source(job.source, classes=segmenter.classes) as source:
        if job.masks:
            check_names({source.frame_name(index) for index in range(source.info.length or 0)})
        size = paint.size(source.info.width, source.info.height)
        sink = open_sink(job, size, source.info)
        masks = MaskSink(job.masks, classes, job.overwrite).write if job.masks else None
        recording = Recording(source, segmenter, sink, paint, masks, options.max_frames)
        try:
            with recording:
                yield recording
        except (InputError, OSError, KeyboardInterrupt) as error:  # the earlier frames are still reported
            recording.broken_off = error
    if not recording.report.frames and not isinstance(recording.broken_off, KeyboardInterrupt):
        unread = InputError(f"{source.info.name}: none of its frames could be read ({describe_losses(source.losses)})")
        raise recording.broken_off or unread


def open_sink(job: VideoJob, size: tuple[int, int], info: SourceInfo) -> Sink | None:
    """The sink of the job's file or stream for pictures of (width, height); nothing is written before `with`."""
    if job.output and is_stream(job.output):
        return StreamSink(job.output, *size, info.fps, info.pixel_shape)
    return VideoSink(Path(job.output), *size, info.fps, job.overwrite, info.pixel_shape) if job.output else None


def job_record(job: VideoJob, recording: Recording) -> dict[str, Any]:
    """The report of a recording as JSON values, with the names of source and output."""
    return {
        "source": recording.source.info.name,
        "output": job.output and (redact(job.output) if is_stream(job.output) else Path(job.output).name),
        **recording.record(),
    }


def open_painter(options: VideoOptions, segmenter: Segmenter, classes: ClassList) -> Painter:
    """The painter of the options' view. Raises InputError if the model cannot provide it."""
    if options.view == "energy" and segmenter.reference is None:
        raise InputError(
            f"--view energy: {options.model} has no familiarity for {segmenter.method}; fit it with "
            "`steadyseg calibrate --familiarity`"
        )
    if options.view != "set-size":
        return Painter(options.view, classes, legend=options.legend, data=segmenter.training_data)
    threshold = conformal_threshold(segmenter.fit, segmenter.method)
    held = f"classes in the prediction set ({percent(segmenter.fit['conformal']['coverage'])} hold the true one)"
    scale = SCALES["set-size"]._replace(title=held)
    return Painter(options.view, classes, scale, threshold, options.legend, segmenter.training_data)
