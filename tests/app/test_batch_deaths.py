"""Videos that kill or freeze their worker, by real processes: each is a failed row, and all other videos are made."""

import ctypes
import fcntl
import os
import signal
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from made.video import grey_frames, write_video
from refusals import refusal

from steadyseg.app.scale.batch.clips import Clip
from steadyseg.app.scale.batch.drive import TRIES, drive
from steadyseg.app.scale.batch.task import BatchOutputs, Row, WorkerVersion
from steadyseg.app.scale.batch.worker import VideoWorker
from steadyseg.app.scale.engines.local_engine import LocalEngine
from steadyseg.app.video.flags import VideoJob, VideoOptions
from steadyseg.core.errors import CheckFailed
from steadyseg.runtime.options import ComputeOptions

OWN = WorkerVersion("0", "3", "2", "0")
STALL_S = 3.0


class Worker:
    """A worker in a process of its own, which dies of every video named poison."""

    def __init__(self, dies_at_once: bool = False) -> None:
        self._dies_at_once = dies_at_once

    def prepare(self, clip: Clip) -> WorkerVersion:
        if self._dies_at_once:
            os.kill(os.getpid(), signal.SIGKILL)
        return OWN

    def run(self, clip: Clip) -> Row:
        if clip.name.startswith("poison"):
            os.kill(os.getpid(), signal.SIGKILL)
        return Row(clip.name, clip.job.source, frames=1)


def driven(make: Callable[[], Any], names: list[str], own: WorkerVersion = OWN) -> list[Row]:
    with closing(LocalEngine(make)) as engine:
        return list(drive(engine, [Clip(name, VideoJob(name)) for name in names], own, 2))


@pytest.fixture
def forgiven(monkeypatch: pytest.MonkeyPatch) -> int:
    """How many workers may die in a row before they are ready."""
    monkeypatch.setattr("steadyseg.app.scale.batch.drive.LOST_IN_A_ROW", 2)
    return 2


@pytest.mark.slow
def test_more_poisoned_videos_than_a_batch_forgives_workers_are_failed_rows(forgiven: int) -> None:
    poisoned = [f"poison{number}" for number in range(forgiven + 1)]
    rows = {row.name: row for row in driven(Worker, [*poisoned, "whole"])}
    assert not rows["whole"].reason
    found = {(rows[name].tries, rows[name].reason) for name in poisoned}
    assert found == {(TRIES, "killed its worker (ended by SIGKILL)")}


@pytest.mark.slow
def test_workers_that_never_become_ready_end_the_batch(forgiven: int) -> None:
    with pytest.raises(CheckFailed, match=f"{forgiven} workers .* SIGKILL"):
        driven(partial(Worker, dies_at_once=True), ["whole"])


@pytest.mark.slow
def test_workers_that_are_not_what_the_driver_is_are_refused() -> None:
    line = refusal(driven, Worker, ["whole"], replace(OWN, libraries="torch 2.0.0"))
    assert line.startswith("the workers have libraries 2 and this machine torch 2.0.0")


class Frozen(VideoWorker):
    """A worker whose decoder holds Python's lock for ever at one video."""

    def prepare(self, clip: Clip) -> WorkerVersion:
        super().prepare(clip)
        return OWN

    def _make(self, clip: Clip) -> Row:
        if clip.name == "poison":
            ctypes.PyDLL(None).sleep(600)
        return super()._make(clip)


@pytest.fixture
def frozen_file(tmp_path: Path) -> Iterator[Path]:
    """A video that whoever opens it waits for, as for a disk that does not answer: this process holds a lease of it."""
    path = write_video(tmp_path / "frozen.mp4", grey_frames(3))
    before = signal.signal(signal.SIGIO, signal.SIG_IGN)
    with path.open("r+b") as file:
        fcntl.fcntl(file, fcntl.F_SETLEASE, fcntl.F_WRLCK)
        yield path
    signal.signal(signal.SIGIO, before)


@pytest.mark.long
def test_what_freezes_at_a_video_ends_that_worker_and_that_video_alone(
    model: str, tmp_path: Path, frozen_file: Path
) -> None:
    options = VideoOptions(model=model, compute=ComputeOptions(executor="torch"))
    whole = write_video(tmp_path / "whole.mp4", grey_frames(3))
    clips = [
        Clip(name, VideoJob(str(path), options=options)) for name, path in (("frozen", frozen_file), ("whole", whole))
    ]
    poison = Clip("poison", VideoJob(str(whole), options=options))
    make = partial(Frozen, BatchOutputs(tmp_path, False, False), STALL_S)
    with closing(LocalEngine(make)) as engine:
        rows = {row.name: row for row in drive(engine, [*clips, poison], OWN, 1)}
    assert rows["frozen"].reason.startswith(f"no new frame for {STALL_S:g} s") and rows["frozen"].tries == 1
    assert rows["poison"].reason == "killed its worker (ended with exit code 1)"
    assert (rows["whole"].reason, rows["whole"].frames) == ("", 3)
