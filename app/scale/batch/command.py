"""`steadyseg batch`: segments many videos, each into a folder of its own, with as many workers as the machine holds."""

import contextlib
import os
import time
from collections.abc import Iterator
from dataclasses import asdict, replace
from pathlib import Path

from rich.table import Column, Table

from steadyseg.app.console import Console, progress_bar
from steadyseg.app.report_file import write_json
from steadyseg.app.scale.batch.clips import Clip, find_clips
from steadyseg.app.scale.batch.drive import drive, open_pool
from steadyseg.app.scale.batch.results import read_results, remove_leftovers
from steadyseg.app.scale.batch.task import BatchTask, Row
from steadyseg.app.scale.batch.worker import versions_of
from steadyseg.app.scale.engines.machine import usable_cores
from steadyseg.app.scale.flags import BatchJob
from steadyseg.app.video.flags import check_options
from steadyseg.app.video.verdict import CAVEAT
from steadyseg.core.errors import CheckFailed, InputError
from steadyseg.core.system.files import lock

SHOWN = 20
"""Videos in the table on the terminal, failed ones first; summary.json lists all."""


def run_batch(job: BatchJob) -> int:
    """Segments all videos; returns 1 if a video failed and 130 after Ctrl-C. A second run skips complete results."""
    check_numbers(job)
    clips = find_clips(job.sources)
    options, model = job.options, job.options.model
    if os.path.isfile(model):  # a worker may run in another folder
        options = replace(options, model=os.path.abspath(model))
    task = BatchTask(job.output.absolute(), job.videos, job.masks, options, versions_of(model))
    console, rows, interrupted = Console(stderr=True), list[Row](), False
    summary = task.folder / "summary.json"
    with only_driver_of(task.folder):
        remove_leftovers(task.folder, clips)
        rows = [row for clip in clips if (row := finished_row(clip, task))]
        skipped = {row.name for row in rows}
        left = [clip for clip in clips if clip.name not in skipped]
        began_s = time.monotonic()
        try:
            if left:
                with contextlib.closing(open_pool(job.ray, options.compute.device)) as pool:
                    show_progress(drive(pool, left, task, job.workers), len(left), console, rows)
        except KeyboardInterrupt:
            interrupted = True
        finally:
            remove_leftovers(task.folder, clips)
            write_summary(summary, rows, time.monotonic() - began_s)
    print_summary(rows, len(clips), time.monotonic() - began_s)
    if interrupted:
        console.print("interrupted: run it again to go on; what is done is whole")
        return 130
    failed = sum(bool(row.reason) for row in rows)
    if failed:
        raise CheckFailed(f"{failed} of {len(clips)} videos failed; {job.output / summary.name} says why")
    return 0


def check_numbers(job: BatchJob) -> None:
    """Raises InputError for numbers out of range, before any file is read."""
    check_options(job.options)
    if job.workers is not None and job.workers < 1:
        raise InputError(f"--workers must be 1 or more, got {job.workers}")
    if job.ray is None and job.workers and job.workers > usable_cores():
        raise InputError(
            f"--workers {job.workers}: this process may use {usable_cores()} cores, one for each video; "
            "use fewer, or --ray with a cluster"
        )


@contextlib.contextmanager
def only_driver_of(folder: Path) -> Iterator[None]:
    """Creates the folder and locks it. Raises InputError if another batch writes into it now."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        file = (folder / ".lock").open("a+b")
    except OSError as error:
        raise InputError(f"{folder}: cannot be written to ({error.strerror}); choose another folder with -o") from error
    with file:
        if not lock(file):
            raise InputError(f"{folder}: another batch writes into it now; wait for it or choose another with -o")
        yield


def finished_row(clip: Clip, task: BatchTask) -> Row | None:
    """The row of a video whose results exist already."""
    if (report := read_results(clip, task)) is None:
        return None
    told = {name: report.get(name, "") for name in ("verdict", "caveat")}
    return Row(clip.name, clip.source, int(report["frames"]), **told, skipped=True)


def show_progress(done: Iterator[Row], total: int, console: Console, rows: list[Row]) -> None:
    """Adds to `rows`; a bar shows videos, frames per second over all workers and the remaining time."""
    with progress_bar("videos", total, console) as show:
        began_s, frames, failed = time.monotonic(), 0, 0
        for count, row in enumerate(done, start=1):
            rows.append(row)
            frames, failed = frames + row.frames, failed + bool(row.reason)
            rate = frames / (time.monotonic() - began_s)
            show(count, status=f"{rate:.1f} frames/s, {failed} failed")


def write_summary(path: Path, rows: list[Row], seconds: float) -> None:
    """Writes the state of every video, sorted by name, so that all engines write the same apart from times."""
    kept = [_record(row) for row in sorted(rows, key=lambda row: row.name)]
    caveat = {"caveat": CAVEAT} if any(row.caveat for row in rows) else {}
    write_json(path, {**totals(rows), "seconds": round(seconds, 1), **caveat, "videos": kept})


def _record(row: Row) -> dict[str, object]:
    state = "failed" if row.reason else "skipped" if row.skipped else "done"
    return {"state": state} | {
        name: value for name, value in asdict(row).items() if name not in ("fault", "skipped", "caveat")
    }


def totals(rows: list[Row]) -> dict[str, int]:
    """Numbers of videos by state, frames of this run, and further tries."""
    return {
        "done": sum(not row.reason and not row.skipped for row in rows),
        "skipped": sum(row.skipped for row in rows),
        "failed": sum(bool(row.reason) for row in rows),
        "frames": sum(row.frames for row in rows if not row.skipped),
        "tried_again": sum(row.tries - 1 for row in rows),
    }


def print_summary(rows: list[Row], videos: int, seconds: float) -> None:
    """Prints the totals on stdout, and a table of the first videos with their verdict or the reason of a failure."""
    console, found = Console(), totals(rows)
    console.print(
        f"{videos} videos: {found['done']} done, {found['skipped']} done before, {found['failed']} failed, "
        f"{videos - len(rows)} left; {found['frames']} frames, {found['frames'] / max(seconds, 1e-9):.1f} frames/s"
    )
    table = Table(Column("video", overflow="fold", min_width=16), "tries", Column("verdict", overflow="fold"))
    shown = sorted((row for row in rows if row.reason or row.verdict), key=lambda row: not row.reason)[:SHOWN]
    for row in shown:
        table.add_row(row.name, str(row.tries), row.reason or row.verdict)
    if any(row.caveat for row in shown):
        table.caption = CAVEAT
    if shown:
        console.print(table)
