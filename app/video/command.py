"""`steadyseg video`: one source through the segmenter into files, with a report of classes, uncertainty and times."""

import contextlib
import time
from collections.abc import Iterator
from dataclasses import replace

from steadyseg.app.console import Console, progress_bar
from steadyseg.app.report_file import check_place, write_json
from steadyseg.app.sources.source import Source
from steadyseg.app.video.caches import Recent
from steadyseg.app.video.flags import VideoJob
from steadyseg.app.video.job import check_job, open_for, segment_to_files
from steadyseg.app.video.report import print_report
from steadyseg.app.video.window import Player, Window, check_display
from steadyseg.core.errors import InputError
from steadyseg.core.frame import Frame
from steadyseg.core.method import MethodOptions
from steadyseg.export.run.networks import FrameNetwork


def run_video(job: VideoJob) -> int:
    """Segments one source. Everything is opened and checked before the first frame. Ctrl-C, a camera that is gone for
    good and a full disk leave playable files and a report; exit codes 130, 2 and 1."""
    if job.grid is not None:
        from steadyseg.app.video.grid import run_grid

        return run_grid(job)
    if job.plot:
        raise InputError("--plot compares methods: add --grid dnn,vq-dnn")
    check_place(job.report, overwrite=job.overwrite)
    check_job(job)
    if job.show:
        check_display()
    networks = Recent[FrameNetwork]()
    segmenter = open_for(job, networks.get)
    player = Player(job, segmenter, lambda one: open_for(with_method(job, one), networks.get)) if job.show else None
    console = Console(stderr=True)

    def opened(source: Source) -> None:
        console.print(f"executor: {segmenter.executor} on {segmenter.device} ({segmenter.why})", soft_wrap=True)
        for note in source.info.notes:
            console.print(f"note: {note}")

    def follow(frames: Iterator[Frame], source: Source) -> bool:
        total = min(filter(None, (source.info.length, job.options.max_frames)), default=None)
        return show_progress(frames, console, total)

    with Window(player) if player else contextlib.nullcontext() as window:
        outcome = segment_to_files(job, segmenter, follow=follow, opened=opened, show=window)
    outcome.record["notes"] += player.notes if player else []
    if job.report:
        write_json(job.report, outcome.record)
    print_report(outcome.record)
    if outcome.lost:
        console.print(f"warning: {outcome.lost}")
    if outcome.broken_off:
        raise outcome.broken_off
    if outcome.interrupted:
        console.print("interrupted: what was done until then is whole")
    return 130 if outcome.interrupted else 0


def with_method(job: VideoJob, method: MethodOptions) -> VideoJob:
    """A copy of the job with another method."""
    return replace(job, options=replace(job.options, method=method))


def show_progress(frames: Iterator[Frame], console: Console, total: int | None) -> bool:
    """Takes all frames, with a progress bar on stderr; returns True if Ctrl-C ended it."""
    with progress_bar("frames", total, console) as show:
        started = time.perf_counter()
        try:
            for done, _ in enumerate(frames, start=1):
                show(done, status=f"{done / (time.perf_counter() - started):.1f} frames/s")
        except KeyboardInterrupt:
            return True
    return False
