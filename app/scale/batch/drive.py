"""The loop of a batch over processes of this machine or tasks of Ray: submit a video, collect its row, try a dead
worker's video again."""

from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from dataclasses import replace
from typing import Any

from steadyseg.app.scale.batch.clips import Clip
from steadyseg.app.scale.batch.task import BatchTask, Row
from steadyseg.app.scale.batch.worker import run
from steadyseg.app.scale.engines.processes import LocalPool, WorkerLost
from steadyseg.app.scale.engines.ray_pool import RayPool
from steadyseg.core.errors import CheckFailed, InputError

TRIES = 3
"""Attempts at a video whose worker dies or meets an error that is not the video's own."""
WAIT_S = 0.5
"""Time limit of a wait; a wait without a limit cannot be interrupted on every platform."""
LOST_IN_A_ROW = 10
"""The batch ends when this many workers in a row have died before they began a video. A worker that dies at a video
does not count: the video may be at fault, and becomes a failed row."""


def open_pool(ray: str | None, device: str) -> LocalPool | RayPool:
    """Processes of this machine, or Ray: `local` or the address of a cluster. On Ray a task on a GPU has its own."""
    if ray is None:
        return LocalPool()
    return RayPool(None if ray == "local" else ray, gpus=int(device not in ("auto", "cpu")))


def drive(pool: LocalPool | RayPool, clips: Sequence[Clip], task: BatchTask, most: int | None = None) -> Iterator[Row]:
    """Yields the result of each video, in the order of completion.

    If `most` is None, one video begins alone, and the memory of its worker decides how many run at a time. Raises
    InputError if the first result is a refusal, since then no video can have these options or this machine's versions.
    Raises CheckFailed if no worker begins, and OSError for a full disk.
    """
    waiting, running = deque((clip, 1) for clip in clips), dict[Future[Any], tuple[Clip, int]]()
    slots, done, unbegun = most or 1, 0, 0
    while waiting or running:
        while waiting and len(running) < slots:
            clip, tries = waiting.popleft()
            running[pool.submit(run, task, clip)] = clip, tries
        for future in wait(running, WAIT_S, FIRST_COMPLETED).done:
            clip, tries = running.pop(future)
            row, unbegun = _row_of(pool, future, task, clip, unbegun)
            if row.full_disk is not None:
                raise OSError(row.full_disk, row.reason)
            if row.refused and not done:
                raise InputError(row.reason)
            if row.reason and not row.own_fault and tries < TRIES:
                waiting.append((clip, tries + 1))
                continue
            if most is None and not row.reason:
                most = slots = pool.most(row.memory_bytes)
            done += 1
            yield replace(row, tries=tries)


def _row_of(
    pool: LocalPool | RayPool, future: "Future[Any]", task: BatchTask, clip: Clip, unbegun: int
) -> tuple[Row, int]:
    """The row of a finished task, and how many workers in a row have died before they began a video."""
    row, mark = Row(clip.name, clip.job.source), task.mark(clip)
    try:
        return pool.result(future), 0
    except WorkerLost as error:
        begun, stalled = mark.exists(), mark.exists() and mark.stat().st_size > 0  # a time limit writes where it was
        mark.unlink(missing_ok=True)
        if stalled:
            return replace(row, reason=f"no new frame for {task.stall_s:g} s; its worker was ended"), 0
        if not begun and unbegun + 1 == LOST_IN_A_ROW:
            raise CheckFailed(f"{LOST_IN_A_ROW} workers in a row have died before a video: ended {error}") from error
        row = replace(row, reason=f"killed its worker (ended {error})", own_fault=False)
        return row, 0 if begun else unbegun + 1
