"""Segments one source into files: the work of `steadyseg video`, and of `steadyseg batch` for every video."""

import contextlib
import os
from collections import deque
from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import torch

from steadyseg.app.executors import TakeNetwork, run_options
from steadyseg.app.open_model import is_graph, make_segmenter, open_model
from steadyseg.app.sources.image_folder import IMAGE_SUFFIXES
from steadyseg.app.sources.open_source import is_street, open_source
from steadyseg.app.sources.read_ahead import read_ahead
from steadyseg.app.sources.source import Source, SourceInfo, describe_losses
from steadyseg.app.video.caches import Recent
from steadyseg.app.video.flags import VideoJob, VideoOptions
from steadyseg.app.video.palette import display_classes
from steadyseg.app.video.render import conformal_threshold
from steadyseg.app.video.report import EachFrame, StreamReport, nothing
from steadyseg.app.video.sinks import MaskSink, Sink, WriteMasks
from steadyseg.app.video.verdict import percent
from steadyseg.app.video.video_writer import VideoSink
from steadyseg.app.video.views import SCALES, Painter
from steadyseg.core.classes import ClassList
from steadyseg.core.errors import InputError
from steadyseg.core.frame import Frame, Maps
from steadyseg.core.options import require_ranges
from steadyseg.core.segmenter import MAX_SAMPLES, Segmenter, segment
from steadyseg.core.system.interrupts import uninterrupted
from steadyseg.export.run.networks import FrameNetwork

Paint = Callable[[Frame, Maps], np.ndarray]
"""Draws the picture of one frame, (H, W, 3) uint8 RGB of the size that the sink expects."""
Show = Callable[[Frame, Maps, SourceInfo], bool]
"""Shows a frame of a source to somebody; False ends the work after it."""
Follow = Callable[[Iterator[Frame], Source], bool]
"""Takes every frame after it was written; returns whether an interruption ended that before the last one."""


@dataclass(frozen=True)
class Outcome:
    """The result of a source."""

    record: dict[str, Any]
    """The report as JSON values."""
    lost: str
    """Losses on the way, in words; empty if there were none."""
    interrupted: bool = False
    broken_off: InputError | OSError | None = None
    """The error that ended the work after frames that went well; their output is complete."""


def check_job(job: VideoJob) -> None:
    """Raises InputError, before any work, for a job that cannot be done."""
    if job.options.max_frames is not None and job.options.max_frames < 1:
        raise InputError(f"--max-frames must be 1 or more, got {job.options.max_frames}")
    refuse_own_input(job)


def refuse_own_input(job: VideoJob) -> None:
    """Raises InputError where --overwrite would replace an input: masks are named like frames, labels and images."""
    is_image = Path(job.source).suffix.lower() in IMAGE_SUFFIXES
    for written, read in (
        (job.output, job.source),
        (job.masks, os.path.dirname(job.source) or "." if is_image else job.source),
        (job.masks, job.labels),
    ):
        if written and read and os.path.exists(written) and os.path.exists(read) and os.path.samefile(written, read):
            raise InputError(f"{written}: would be written over while it is read; choose another place")


def needs_probs(job: VideoJob) -> bool:
    """True if the job reads mean probabilities: for metrics against labels, or for sizes of prediction sets."""
    return job.labels is not None or is_street(job.source) or job.options.view == "set-size"


def open_for(job: VideoJob, take: TakeNetwork | None = None) -> Segmenter:
    """The segmenter that the job's options ask for. `take` may hand out networks that were compiled before; by default
    the networks of a few frame sizes are kept, for folders and streams that switch between sizes."""
    options, compute = job.options, job.options.compute
    require_ranges(options, {"low_accuracy": (0.0, 1.0)})
    torch.manual_seed(0)  # the dropout masks that torch draws, and the seeds of others, so that results repeat
    run = run_options(compute, options.size, keep_probs=needs_probs(job))
    segmenter = make_segmenter(open_model(options.model), options.method, run, take or Recent[FrameNetwork]().get)
    segmenter.low_accuracy = options.low_accuracy
    return segmenter


def segment_to_files(
    job: VideoJob,
    segmenter: Segmenter,
    *,
    follow: Follow,
    each: EachFrame = nothing,
    opened: Callable[[Source], None] = nothing,
    show: Show | None = None,
) -> Outcome:
    """Segments one source into files. Everything is opened and checked before the first frame; then `opened` is called
    with the source.

    An interruption, a camera that is gone for good and a full disk leave playable files and a report of the frames
    until then. `each` gets the figures of every frame. Raises InputError where not one frame could be read.
    """
    options = job.options
    classes = shown_classes(options, segmenter)
    paint = open_painter(options, segmenter, classes)
    with open_source(job.source, labels=job.labels, classes=segmenter.classes) as source:
        size = paint.size(source.info.width, source.info.height)
        sink = VideoSink(job.output, *size, source.info.fps, job.overwrite) if job.output else None
        masks = MaskSink(job.masks, classes, job.overwrite).write if job.masks else None
        opened(source)
        report = StreamReport(segmenter.classes, each)
        interrupted = False
        broken_off: InputError | OSError | None = None
        try:
            with contextlib.closing(
                process(
                    source, segmenter, sink, paint, report=report, masks=masks, max_frames=options.max_frames, show=show
                )
            ) as frames:
                interrupted = follow(frames, source)
        except (InputError, OSError) as error:  # hours may have gone well
            broken_off = error
    if not report.frames and not interrupted:
        unread = InputError(f"{source.info.name}: none of its frames could be read ({describe_losses(source.losses)})")
        raise broken_off or unread
    record = {
        "source": source.info.name,
        "output": job.output and job.output.name,
        **report.record(segmenter, source, sink.notes if sink else ()),
    }
    return Outcome(record, describe_losses(source.losses), interrupted, broken_off)


def process(
    source: Source,
    segmenter: Segmenter,
    sink: Sink | None,
    paint: Paint,
    *,
    report: StreamReport | None = None,
    masks: WriteMasks | None = None,
    max_frames: int | None = None,
    show: Show | None = None,
) -> Generator[Frame, None, None]:
    """Yields every frame after it was written and reported. Closing the generator in any way finishes the sink."""
    clock = segmenter.clock
    decode_ms: deque[float] = deque(maxlen=MAX_SAMPLES)
    clock.samples["decode"] = decode_ms
    with sink or contextlib.nullcontext(), contextlib.closing(read_ahead(source, decode_ms=decode_ms)) as frames:
        for frame, maps in segment(islice(frames, max_frames), segmenter):
            with uninterrupted():  # a frame is in the video, the masks and the report, or in none of them
                if sink:
                    with clock.measure("render"):
                        picture = paint(frame, maps)
                    with clock.measure("encode"):
                        sink.write(picture, frame.time_s)
                if masks:
                    with clock.measure("masks"):
                        masks(maps, source.frame_name(frame.index))
                if report:
                    report.update(frame, maps)
            yield frame
            if show and not show(frame, maps, source.info):
                return


def shown_classes(options: VideoOptions, segmenter: Segmenter) -> ClassList:
    """The segmenter's classes in the colours that the options ask for."""
    return display_classes(segmenter.classes) if options.palette == "distinct" else segmenter.classes


def open_painter(options: VideoOptions, segmenter: Segmenter, classes: ClassList) -> Painter:
    """The painter of the view that the options ask for. Raises InputError if the model cannot provide it."""
    if options.view == "energy" and segmenter.reference is None:
        raise InputError(
            f"--view energy: {options.model} has no novelty for {segmenter.method}; fit it with `steadyseg calibrate "
            "--novelty`"
        )
    if options.view != "set-size":
        return Painter(options.view, classes, legend=options.legend)
    if is_graph(options.model):
        raise InputError(
            f"{options.model}: a graph file carries no thresholds for --view set-size; give the checkpoint"
        )
    threshold = conformal_threshold(segmenter.fit, segmenter.method)
    held = f"classes in the prediction set ({percent(segmenter.fit['conformal']['coverage'])} hold the true one)"
    return Painter(options.view, classes, SCALES["set-size"]._replace(title=held), threshold, options.legend)
