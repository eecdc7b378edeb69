"""The loop of a batch over any engine: each worker gets one video at a time; a dead worker's video is tried again."""

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from steadyseg.app.scale.batch.clips import Clip
from steadyseg.app.scale.batch.task import Row, WorkerVersion
from steadyseg.app.scale.engines.engine import Answer, Engine
from steadyseg.core.errors import CheckFailed, InputError

TRIES = 3
"""Attempts at a video whose worker dies or meets an error that is not the video's own."""
WAIT_S = 0.5
"""Time limit of a wait; a wait without a limit cannot be interrupted on every platform."""
LOST_IN_A_ROW = 10
"""The batch ends when this many workers in a row have died before they were ready. A worker that dies at a video does
not count: the video may be at fault, and becomes a failed row."""


@dataclass
class _Task:
    clip: Clip
    tries: int = 1


def drive(engine: Engine, clips: Sequence[Clip], own: WorkerVersion, most: int | None = None) -> Iterator[Row]:
    """Yields the result of each video, in the order of completion.

    If `most` is None, one worker begins, and its memory decides how many the engine adds. Every worker reports its
    version and opens the network before it gets a video. So no video waits for a worker that the engine cannot place.
    Raises InputError for options that no video can have and for workers of other versions than the driver (`own`),
    CheckFailed if no worker becomes ready.
    """
    waiting, busy = deque(map(_Task, clips)), dict[int, _Task]()
    idle, lost_in_a_row = deque[int](), 0
    slots = _grow(engine, 0, most or 1, clips)
    measured = most is not None
    while waiting or busy:
        while waiting and idle:
            slot = idle.popleft()
            busy[slot] = waiting.popleft()
            engine.call(slot, "run", busy[slot].clip)
        for answer in engine.wait(WAIT_S):
            task = busy.pop(answer.slot, None)
            row = _row_of(answer, task) if task else None
            was_ready = task is not None or answer.slot in idle
            if answer.slot in idle:
                idle.remove(answer.slot)
            if row and row.stalled:
                engine.replace(answer.slot)
            if answer.lost or (row and row.stalled):
                engine.call(answer.slot, "prepare", clips[0])
            else:
                idle.append(answer.slot)
            if not was_ready:
                lost_in_a_row = lost_in_a_row + 1 if answer.lost else 0
                if lost_in_a_row == LOST_IN_A_ROW:
                    raise CheckFailed(f"{LOST_IN_A_ROW} workers in a row have died before a video: {answer.lost}")
                _check_like(answer, own)
            if row is None or task is None:
                continue
            if row.full_disk is not None:
                raise OSError(row.full_disk, row.reason)
            if row.reason and not row.own_fault and task.tries < TRIES:
                waiting.append(_Task(task.clip, task.tries + 1))
                continue
            if not measured and not row.reason:
                slots = _grow(engine, slots, min(engine.most(row.memory_bytes), len(waiting) + 1), clips)
                measured = True
            yield row


def _grow(engine: Engine, before: int, slots: int, clips: Sequence[Clip]) -> int:
    """Starts new workers, which open the network at once."""
    slots = max(1, min(slots, len(clips)))
    engine.grow(slots)
    for slot in range(before, slots):
        engine.call(slot, "prepare", clips[0])
    return slots


def _check_like(answer: Answer, own: WorkerVersion) -> None:
    """Raises InputError if the worker cannot open the network or has other versions."""
    if answer.refusal:
        raise InputError(answer.refusal)
    for name, ours in vars(own).items() if answer.value else ():
        theirs = getattr(answer.value, name)
        if theirs != ours:
            raise InputError(
                f"the workers have {name} {theirs} and this machine {ours}: results would depend on where a video "
                "goes; install the same everywhere"
            )


def _row_of(answer: Answer, task: _Task) -> Row:
    reason = f"killed its worker ({answer.lost})" if answer.lost else answer.refusal
    clip = task.clip
    row: Row = Row(clip.name, clip.job.source, reason=reason, own_fault=False) if reason else answer.value
    return replace(row, tries=task.tries)
