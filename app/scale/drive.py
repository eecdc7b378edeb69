"""The loop of a batch over any engine: a video at a time for every worker; what died is tried again, nothing stops the rest."""

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from app.scale.clips import Clip
from app.scale.engine import Answer, Engine
from app.scale.task import About, Row
from core.errors import CheckFailed, InputError

WAIT_S = 0.5
"""A wait without a limit could not be interrupted everywhere."""
LOST_IN_A_ROW = 10
"""Workers that died without one video done in between: then it is not the videos."""


@dataclass
class _Task:
    clip: Clip
    tries: int = 1


def drive(engine: Engine, clips: Sequence[Clip], own: About, retries: int, most: int | None = None) -> Iterator[Row]:
    """Yields what became of each video, in the order of their ends.

    Without `most` one worker begins, and the engine decides by its memory how many follow. InputError for options that no
    video can have, and for workers that are not what the driver (`own`) is; CheckFailed where workers keep dying.
    """
    waiting, busy = deque(map(_Task, clips)), dict[int, _Task]()
    engine.grow(1)
    _meet(engine, clips[0], own)
    idle = deque(range(_grow(engine, most, len(clips)) if most else 1))
    measured, lost_in_a_row = most is not None, 0
    while waiting or busy:
        while waiting and idle:
            slot = idle.popleft()
            busy[slot] = waiting.popleft()
            engine.call(slot, "run", busy[slot].clip)
        for answer in engine.wait(WAIT_S):
            task = busy.pop(answer.slot, None)
            if task is None:  # it died while it had nothing to do
                continue
            idle.append(answer.slot)
            row = replace(_row_of(answer, task.clip), tries=task.tries)
            lost_in_a_row = lost_in_a_row + 1 if answer.lost else 0
            if lost_in_a_row == LOST_IN_A_ROW:
                raise CheckFailed(f"{LOST_IN_A_ROW} workers in a row have died without one video done; {row.reason}")
            if row.full_disk is not None:
                raise OSError(row.full_disk, row.reason)
            if row.reason and not row.own_fault and task.tries <= retries:
                waiting.append(_Task(task.clip, task.tries + 1))
                continue
            if not measured and not row.reason:
                slots = _grow(engine, engine.most(row.memory_bytes), len(waiting) + 1)
                idle.extend(range(1, slots))
                measured = True
            yield row


def _meet(engine: Engine, clip: Clip, own: About) -> None:
    """The first worker opens the network before any video is given out."""
    for _ in range(LOST_IN_A_ROW):
        engine.call(0, "prepare", clip)
        answers: list[Answer] = []
        while not answers:
            answers = engine.wait(WAIT_S)
        (answer,) = answers
        if answer.refusal:
            raise InputError(answer.refusal)
        if answer.lost is None:
            break
    else:
        raise CheckFailed(f"no worker starts: {answer.lost}")
    for name, ours in vars(own).items():
        theirs = getattr(answer.value, name)
        if theirs != ours:
            raise InputError(
                f"the workers have {name} {theirs} and this machine {ours}: results would depend on where a video goes; "
                "install the same everywhere"
            )


def _grow(engine: Engine, slots: int, videos: int) -> int:
    slots = max(1, min(slots, videos))
    engine.grow(slots)
    return slots


def _row_of(answer: Answer, clip: Clip) -> Row:
    if answer.lost or answer.refusal:
        return Row(clip.name, clip.job.source, reason=answer.lost or answer.refusal or "", own_fault=False)
    row: Row = answer.value
    return row
