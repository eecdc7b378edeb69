"""`steadyseg video`: one source through the segmenter into files, with a report of what was seen and what it took."""

import contextlib
import os
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import torch
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from app.find_model import is_graph
from app.open_model import open_segmenter
from app.report_file import check_place, write_json
from app.sources.image_folder import IMAGE_SUFFIXES
from app.sources.open_source import describe_losses, open_source
from app.video.flags import VideoJob
from app.video.loop import Paint, process
from app.video.render import (
    View,
    conformal_threshold,
    draw_banner,
    draw_set_sizes,
    draw_strange,
    draw_uncertainty,
    rendered_size,
)  # fmt: skip
from app.video.report import StreamReport, print_report
from app.video.sinks import MaskSink, NullSink, Sink, VideoSink
from core.checkpoint import read_meta
from core.errors import InputError
from core.frame import Frame, Maps
from core.method import Method
from core.segmenter import Segmenter
from seg.pretrained import find_checkpoint

REMEDY = "fit it with `steadyseg calibrate --own-world`"


def run_video(job: VideoJob) -> int:
    """Everything is opened and checked before the first frame. Ctrl-C, a camera that is gone for good and a full disk leave
    playable files and a report; exit codes 130, 2 and 1."""
    if job.max_frames is not None and job.max_frames < 1:
        raise InputError(f"--max-frames must be 1 or more, got {job.max_frames}")
    check_place(job.report, overwrite=job.overwrite)
    refuse_own_input(job)
    torch.manual_seed(job.seed)  # of the masks that torch draws, and of what seeds the others
    segmenter = open_segmenter(
        job.model, job.method, size=job.size, executor=job.executor, precision=job.precision, device=job.device,
        keep_probs=job.labels is not None or job.source.startswith("street") or job.view == "set-size",
    )  # fmt: skip
    view = choose_view(job, segmenter)
    console = Console(stderr=True)
    with open_source(job.source, labels=job.labels, classes=segmenter.classes) as source:
        width, height = rendered_size("overlay" if callable(view) else view, source.info.width, source.info.height)
        sink: Sink = VideoSink(job.output, width, height, source.info.fps, job.overwrite) if job.output else NullSink()
        masks = MaskSink(job.masks, segmenter.classes, job.overwrite) if job.masks else None
        console.print(f"executor: {segmenter.executor} on {segmenter.device} ({segmenter.why})", soft_wrap=True)
        for note in source.info.notes:
            console.print(f"note: {note}")
        report = StreamReport(segmenter.classes)
        total = min(filter(None, (source.info.length, job.max_frames)), default=None)
        interrupted = False
        broken_off: InputError | OSError | None = None
        try:
            with contextlib.closing(
                process(source, segmenter, sink, view, report=report, masks=masks, max_frames=job.max_frames)
            ) as frames:
                interrupted = show_progress(frames, console, total)
        except (InputError, OSError) as error:  # hours may have gone well
            broken_off = error
    if not report.frames and not interrupted:
        nothing = InputError(f"{source.info.name}: none of its frames could be read ({describe_losses(source.losses)})")
        raise broken_off or nothing
    record = {
        "source": source.info.name,
        "output": job.output and job.output.name,
        **report.record(segmenter, source, sink.notes),
    }
    if job.report:
        write_json(job.report, record)
    print_report(record)
    lost = describe_losses(source.losses)
    if lost:
        console.print(f"warning: {lost}")
    if broken_off:
        raise broken_off
    if interrupted:
        console.print("interrupted: what was done until then is whole")
    return 130 if interrupted else 0


def refuse_own_input(job: VideoJob) -> None:
    """InputError where --overwrite would replace what is read: a label is called like its frame, and so like its image."""
    is_image = Path(job.source).suffix.lower() in IMAGE_SUFFIXES
    for written, read in (
        (job.output, job.source),
        (job.masks, os.path.dirname(job.source) or "." if is_image else job.source),
        (job.masks, job.labels),
    ):
        if written and read and os.path.exists(written) and os.path.exists(read) and os.path.samefile(written, read):
            raise InputError(f"{written}: would be written over while it is read; choose another place")


def choose_view(job: VideoJob, segmenter: Segmenter) -> View | Paint:
    """What the output shows; InputError where the model cannot show it."""
    if job.view == "set-size":
        return make_set_size_view(job.model, segmenter.method)
    if job.view == "strange":
        if segmenter.own_world is None:
            raise InputError(
                f"--view strange: {job.model} knows nothing of its own world with {segmenter.method}; {REMEDY}"
            )
        return lambda _, maps: draw_banner(draw_strange(maps), maps)
    return job.view


def make_set_size_view(model: str, method: Method) -> Paint:
    """Draws the size of every pixel's prediction set; the thresholds belong to the checkpoint's temperature for this mode."""
    if is_graph(model):
        raise InputError(f"{model}: a graph file carries no thresholds for --view set-size; give the checkpoint")
    meta = read_meta(find_checkpoint(model))
    threshold = conformal_threshold(meta, method)

    def draw(frame: Frame, maps: Maps) -> np.ndarray:
        return draw_uncertainty(draw_set_sizes(maps, threshold))

    return draw


def show_progress(frames: Iterator[Frame], console: Console, total: int | None) -> bool:
    """Runs the job to its end with frames done, frames per second and time left on stderr; returns whether Ctrl-C ended it."""
    columns = (
        TextColumn("{task.completed}/{task.fields[of]} frames"), BarColumn(), TextColumn("{task.fields[rate]} frames/s"),
        TimeElapsedColumn(), TextColumn("ETA"), TimeRemainingColumn(),
    )  # fmt: skip
    with Progress(*columns, console=console) as progress:
        task = progress.add_task("frames", total=total, of=total or "?", rate="-")
        started = time.perf_counter()
        try:
            for done, _ in enumerate(frames, start=1):
                progress.update(task, completed=done, rate=f"{done / (time.perf_counter() - started):.1f}")
        except KeyboardInterrupt:
            return True
    return False
