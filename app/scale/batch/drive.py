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


def open_pool(ray: str | None, device: str) -> LocalPool | RayPool:
    """Processes of this machine, or Ray: `local` or the address of a cluster. On Ray a task on a GPU has its own."""
    if ray is None:
        return LocalPool()
    return RayPool(None if ray == "local" else ray, gpus=int(device not in ("auto", "cpu")))


def drive(pool: LocalPool | RayPool, clips: Sequence[Clip], task: BatchTask, most: int | None = None) -> Iterator[Row]:
    """Yields the result of each video, in the order of completion, with at most `most` videos at a time.

    Raises InputError if a worker refuses the options or this machine's versions, and CheckFailed for a full disk.
    """
    waiting, running = deque((clip, 1) for clip in clips), dict[Future[Any], tuple[Clip, int]]()
    most = most or pool.most()
    while waiting or running:
        while waiting and len(running) < most:
            clip, tries = waiting.popleft()
            running[pool.submit(run, task, clip)] = clip, tries
        for future in wait(running, WAIT_S, FIRST_COMPLETED).done:
            clip, tries = running.pop(future)
            row = _row_of(pool, future, task, clip)
            if row.fault == "disk":
                raise CheckFailed(row.reason)
            if row.fault == "options":
                raise InputError(row.reason)
            if row.fault == "worker" and tries < TRIES:
                waiting.append((clip, tries + 1))
            else:
                yield replace(row, tries=tries)


def _row_of(pool: LocalPool | RayPool, future: "Future[Any]", task: BatchTask, clip: Clip) -> Row:
    """The row of a finished task."""
    try:
        row: Row = pool.result(future)
        return row
    except WorkerLost as error:
        row, mark = Row(clip.name, clip.source), task.mark(clip)
        stalled = mark.exists() and mark.stat().st_size > 0  # a time limit writes where it was
        mark.unlink(missing_ok=True)
        if stalled:
            return replace(row, reason=f"no new frame for {task.stall_s:g} s; its worker was ended")
        return replace(row, reason=f"killed its worker (ended {error})", fault="worker")
