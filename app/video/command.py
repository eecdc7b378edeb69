"""`steadyseg video`: one source through the segmenter into files, with a report of classes, uncertainty and times."""

import json
import math
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

from steadyseg.app.console import Console, progress_bar
from steadyseg.app.report_file import check_place, write_json
from steadyseg.app.sources.source import Source, describe_losses
from steadyseg.app.video.flags import VideoJob
from steadyseg.app.video.job import check_job, job_record, open_for, open_recording
from steadyseg.app.video.recording import Recorded, Recording
from steadyseg.app.video.report import print_report
from steadyseg.runtime.options import DEFAULT_MODEL

STDOUT = Path("-")
"""The report that is lines of JSON on stdout."""
LINE_S = 1.0
"""Seconds between two lines."""
SPEED_FRAMES = 10
"""The speed is printed once this many frames followed the first."""
FASTER = {"road-quality": DEFAULT_MODEL, DEFAULT_MODEL: "road-mobile"}
"""The network to name where one is too slow: it is at least twice as fast (README)."""


def run_video(job: VideoJob) -> int:
    """Segments one source. Everything is opened and checked before the first frame. Playable files and a report remain
    after Ctrl-C (exit code 130), after the final loss of a camera (2), and on a full disk (1)."""
    lines = job.report == STDOUT
    if job.report and not lines:
        check_place(job.report, overwrite=job.overwrite)
    check_job(job)
    segmenter, console = open_for(job), Console(stderr=True)
    with open_recording(job, segmenter) as recording:
        console.print(f"backend: {segmenter.backend} on {segmenter.device} ({segmenter.why})", soft_wrap=True)
        for note in recording.notes:
            console.print(f"note: {note}", soft_wrap=True)
        total = min(filter(None, (recording.source.info.length, job.options.max_frames)), default=None)
        frames = with_speed(recording, job.options.model, console, total)
        for _ in with_lines(frames, recording.source) if lines else frames:
            pass
    record = job_record(job, recording)
    if lines:
        print(json.dumps(record))
    else:
        if job.report:
            write_json(job.report, record)
        print_report(record)
    if lost := describe_losses(recording.source.losses):
        console.print(f"warning: {lost}")
    if isinstance(recording.broken_off, KeyboardInterrupt):
        console.print("interrupted: what was done until then is whole")
        return 130
    if recording.broken_off:
        raise recording.broken_off
    return 0


def with_speed(recording: Recording, model: str, console: Console, total: int | None) -> Iterator[Recorded]:
    """Yields the frames, with a progress bar and their speed on stderr, and a line about the speed at the start."""
    with progress_bar("frames", total, console) as show:
        started = first = time.perf_counter()
        for done, frame in enumerate(recording, start=1):
            now = time.perf_counter()
            first = now if done == 1 else first  # the first frame loads what it needs
            if done == SPEED_FRAMES + 1:
                console.print(speed_line(SPEED_FRAMES / (now - first), recording, model), soft_wrap=True)
            show(done, status=f"{done / (now - started):.1f} frames/s")
            yield frame


def with_lines(frames: Iterable[Recorded], source: Source) -> Iterator[Recorded]:
    """Yields the frames, and prints the values of one frame a second on stdout, as a line of JSON."""
    printed_s = -math.inf
    for recorded in frames:
        if time.monotonic() - printed_s >= LINE_S:
            printed_s = time.monotonic()
            values = vars(recorded.figures) | {"class_shares": recorded.figures.class_shares.round(4).tolist()}
            print(json.dumps({"at": time.time(), **values, "losses": source.losses}), flush=True)
        yield recorded


def speed_line(rate: float, recording: Recording, model: str) -> str:
    """The measured speed beside the source's. If the network is slower than the source, names a faster one."""
    stages, fps = recording.segmenter.clock.summary(), recording.source.info.fps
    busy_ms = sum(times["latency_p50_ms"] for stage, times in stages.items() if stage != "decode")
    hint = f"; --model {FASTER[model]} is twice as fast" if model in FASTER and busy_ms * fps > 1e3 else ""
    return f"speed: {rate:.1f} frames/s, the source has {fps:g}{hint}"
