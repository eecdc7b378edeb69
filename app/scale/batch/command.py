"""`steadyseg batch`: segments many videos, each into a folder of its own, with as many workers as the machine holds."""

import contextlib
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
"""Videos in each table on the terminal; summary.json lists all."""


def run_batch(job: BatchJob) -> int:
    """Segments all videos; returns 1 if a video failed and 130 after Ctrl-C. A second run skips complete results."""
    check_numbers(job)
    clips = find_clips(job.sources, job.options)
    wanted = BatchTask(job.output.absolute(), job.videos, job.masks)
    console, rows, interrupted = Console(stderr=True), list[Row](), False
    summary = wanted.folder / "summary.json"
    with only_driver_of(wanted.folder):
        remove_leftovers(wanted.folder, clips)
        rows = [row for clip in clips if (row := finished_row(clip, wanted))]
        skipped = {row.name for row in rows}
        left = [clip for clip in clips if clip.name not in skipped]
        if skipped:
            console.print(f"{len(skipped)} of {len(clips)} videos are done already")
        began_s = time.monotonic()
        try:
            if left:
                devices = {clip.job.options.compute.device for clip in left}  # all workers use the most demanding one
                device = max(devices, key=lambda device: device not in ("auto", "cpu"))
                model = left[0].job.options.model
                task = replace(wanted, model=model, versions=versions_of(model))
                with contextlib.closing(open_pool(job.ray, device)) as pool:
                    show_progress(drive(pool, left, task, job.workers), len(left), console, rows)
        except KeyboardInterrupt:
            interrupted = True
        finally:
            remove_leftovers(wanted.folder, clips)
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


def finished_row(clip: Clip, wanted: BatchTask) -> Row | None:
    """The row of a video whose results exist already."""
    report = read_results(clip, wanted)
    if report is None:
        return None
    verdict = report.get("verdict", "")
    return Row(clip.name, clip.job.source, frames=int(report["frames"]), verdict=verdict, skipped=True)


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
    caveat = {"caveat": CAVEAT} if any(row.verdict for row in rows) else {}
    write_json(path, {**totals(rows), "seconds": round(seconds, 1), **caveat, "videos": kept})


def _record(row: Row) -> dict[str, object]:
    state = "failed" if row.reason else "skipped" if row.skipped else "done"
    left_out = ("own_fault", "refused", "full_disk", "skipped")
    return {"state": state} | {name: value for name, value in asdict(row).items() if name not in left_out}


def totals(rows: list[Row]) -> dict[str, int]:
    return {
        "done": sum(not row.reason and not row.skipped for row in rows),
        "skipped": sum(row.skipped for row in rows),
        "failed": sum(bool(row.reason) for row in rows),
        "frames": sum(row.frames for row in rows if not row.skipped),
        "tried_again": sum(row.tries - 1 for row in rows),
    }


def print_summary(rows: list[Row], videos: int, seconds: float) -> None:
    """Prints a table of all videos on stdout, and a table of the failed videos."""
    console, found = Console(), totals(rows)
    table = Table(title=f"{videos} videos", title_justify="left", show_header=False)
    for name in ("done", "skipped", "failed"):
        table.add_row(name, str(found[name]))
    table.add_row("left", str(videos - len(rows)))
    table.add_row("frames", str(found["frames"]))
    table.add_row("speed", f"{found['frames'] / max(seconds, 1e-9):.1f} frames/s over {seconds:.0f} s")
    table.add_row("tried again", str(found["tried_again"]))
    console.print(table)
    if judged := [row for row in rows if row.verdict]:
        verdicts = Table(Column("video", overflow="fold", min_width=16), Column("verdict", overflow="fold"))
        for row in judged[:SHOWN]:
            verdicts.add_row(row.name, row.verdict)
        verdicts.caption = CAVEAT
        console.print(verdicts)
    if failed := [row for row in rows if row.reason]:
        reasons = Table(Column("failed", overflow="fold", min_width=24), "tries", Column("reason", overflow="fold"))
        for row in failed[:SHOWN]:
            reasons.add_row(row.name, str(row.tries), row.reason)
        console.print(reasons)
