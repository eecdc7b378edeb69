"""`steadyseg batch`: segments many videos, each into a folder of its own, with as many workers as the machine can
hold."""

import contextlib
import re
import time
from collections.abc import Iterator
from dataclasses import asdict
from functools import partial
from pathlib import Path

from rich.table import Column, Table

from app.console import Console
from app.progress import progress_bar
from app.report_file import write_json
from app.scale.batch.clips import Clip, find_clips
from app.scale.batch.drive import drive
from app.scale.batch.frame_table import import_pyarrow
from app.scale.batch.results import read_results, remove_leftovers
from app.scale.batch.task import BatchOutputs, Row
from app.scale.batch.worker import VideoWorker, about
from app.scale.engines.machine import usable_cores
from app.scale.engines.open_engine import THREADS, check_engine, open_engine
from app.scale.flags import BatchJob
from core.errors import CheckFailed, InputError
from core.options import require_ranges
from core.system.files import lock

SHOWN = 20
"""Failed videos in the table on the terminal; summary.json lists all."""


def run_batch(job: BatchJob) -> int:
    """Segments all videos; returns exit code 1 if a video failed and 130 after Ctrl-C. A second run skips complete
    results."""
    check_numbers(job)
    import_pyarrow()
    clips = take_part(find_clips(job.sources, job.options), job.part)
    wanted = BatchOutputs(job.output.absolute(), job.videos, job.masks)
    console, rows, interrupted = Console(stderr=True), list[Row](), False
    summary = wanted.folder / f"summary{suffix_of(job.part)}.json"
    with only_driver_of(wanted.folder, job.part):
        remove_leftovers(wanted.folder, clips)
        rows = [row for clip in clips if (row := finished_row(clip, wanted))]
        skipped = {row.name for row in rows}
        left = [clip for clip in clips if clip.name not in skipped]
        if skipped:
            console.print(f"{len(skipped)} of {len(clips)} videos are done already")
        began_s = time.monotonic()
        try:
            if left:
                with open_engine(
                    job.engine, partial(VideoWorker, wanted, THREADS, job.stall_seconds), device_of(left)
                ) as engine:
                    own = about(left[0].job.options.model)
                    show_progress(drive(engine, left, own, job.retries, job.workers), len(left), console, rows)
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
    require_ranges(job, {"retries": (0, 100), "stall_seconds": (1, 1e6)})
    if job.workers is not None and job.workers < 1:
        raise InputError(f"--workers must be 1 or more, got {job.workers}")
    check_engine(job.engine)
    if job.engine.engine == "local" and job.workers and job.workers * THREADS > usable_cores():
        raise InputError(
            f"--workers {job.workers}: this process may use {usable_cores()} cores, and each video takes {THREADS}; "
            "use fewer or --engine ray with a cluster"
        )


@contextlib.contextmanager
def only_driver_of(folder: Path, part: str | None) -> Iterator[None]:
    """Creates the folder and locks it. Raises InputError if another batch works on some of the same videos: a whole
    batch beside any other, or a part beside one of another division. A whole batch holds `.lock` exclusively; parts
    share it, and each locks a file of its own. Of two that begin at once, both hold their own file before either checks
    those of the others.
    """
    refusal = InputError(f"{folder}: another batch writes into it now; wait for it or choose another folder with -o")
    with contextlib.ExitStack() as stack:

        def locked(name: str, shared: bool = False) -> bool:
            return lock(stack.enter_context((folder / name).open("a+b")), shared=shared)

        try:
            folder.mkdir(parents=True, exist_ok=True)
            free = locked(".lock", shared=part is not None)
            if part is not None:
                free = free and locked(f".lock{suffix_of(part)}")
                of = suffix_of(part).rpartition("-")[2]
                others = (path.name for path in folder.glob(".lock-*-of-*") if path.name.rpartition("-")[2] != of)
                free = free and all(locked(other, shared=True) for other in others)
        except OSError as error:
            raise InputError(
                f"{folder}: cannot be written to ({error.strerror}); choose another folder with -o"
            ) from error
        if not free:
            raise refusal
        yield


def suffix_of(part: str | None) -> str:
    """The end of the names of a part's files: 0/4 -> -0-of-4; empty for a whole batch."""
    return "" if part is None else f"-{part.replace('/', '-of-')}"


def take_part(clips: tuple[Clip, ...], part: str | None) -> tuple[Clip, ...]:
    """The videos of one part. Raises InputError for a part that does not exist."""
    if part is None:
        return clips
    match = re.fullmatch(r"(0|[1-9]\d{0,5})/([1-9]\d{0,5})", part)
    if match is None or int(match[1]) >= int(match[2]):
        raise InputError(f"--part must be I/N with I from 0 to N - 1, got {part!r}")
    return clips[int(match[1]) :: int(match[2])]


def device_of(clips: list[Clip]) -> str:
    """The device that all workers use: the most demanding one of the videos."""
    return max((clip.job.options.compute.device for clip in clips), key=lambda device: device not in ("auto", "cpu"))


def finished_row(clip: Clip, wanted: BatchOutputs) -> Row | None:
    """The row of a video whose results exist already."""
    report = read_results(clip, wanted)
    if report is None:
        return None
    return Row(clip.name, clip.job.source, frames=int(report["frames"]), skipped=True)


def show_progress(done: Iterator[Row], total: int, console: Console, rows: list[Row]) -> None:
    """Adds to `rows` while a bar shows videos, frames per second over all workers and the remaining time."""
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
    write_json(path, {**totals(rows), "seconds": round(seconds, 1), "videos": kept})


def _record(row: Row) -> dict[str, object]:
    state = "failed" if row.reason else "skipped" if row.skipped else "done"
    left_out = ("own_fault", "stalled", "full_disk", "skipped")
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
    """Prints one table of all videos on stdout, and one of those that failed."""
    console, found = Console(), totals(rows)
    table = Table(title=f"{videos} videos", title_justify="left", show_header=False)
    for name in ("done", "skipped", "failed"):
        table.add_row(name, str(found[name]))
    table.add_row("left", str(videos - len(rows)))
    table.add_row("frames", str(found["frames"]))
    table.add_row("speed", f"{found['frames'] / max(seconds, 1e-9):.1f} frames/s over {seconds:.0f} s")
    table.add_row("tried again", str(found["tried_again"]))
    console.print(table)
    failed = [row for row in rows if row.reason]
    if failed:
        reasons = Table(Column("failed", overflow="fold", min_width=24), "tries", Column("reason", overflow="fold"))
        for row in failed[:SHOWN]:
            reasons.add_row(row.name, str(row.tries), row.reason)
        console.print(reasons)
