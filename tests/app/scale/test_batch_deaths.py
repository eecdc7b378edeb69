"""Videos that kill or freeze their worker, by real processes: each is a failed row, and all other videos are made."""

import ctypes
import fcntl
import os
import signal
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
from made.video import grey_frames, write_video
from refusals import refusal

from steadyseg.app.scale.batch import results
from steadyseg.app.scale.batch.clips import Clip
from steadyseg.app.scale.batch.drive import TRIES, drive
from steadyseg.app.scale.batch.task import BatchTask, Row
from steadyseg.app.scale.batch.worker import run, versions_of
from steadyseg.app.scale.engines.processes import LocalPool
from steadyseg.app.video.flags import VideoOptions
from steadyseg.runtime.options import ComputeOptions

STALL_S = 3.0
"""Time limit of the videos that freeze; a whole one has the usual limit, since the machine may be busy."""
Driven = Callable[..., dict[str, Row]]


def dying(task: BatchTask, clip: Clip) -> Row:
    """The work on a video, which dies of every video named poison."""
    if clip.name.startswith("poison"):
        os.kill(os.getpid(), signal.SIGKILL)
    return Row(clip.name, clip.source, frames=1)


def freezing(task: BatchTask, clip: Clip) -> Row:
    """The work on a video, whose decoder holds Python's lock for ever at the video named poison."""
    if clip.name == "poison":
        results.make_results = lambda *_: ctypes.PyDLL(None).sleep(600)  # type: ignore[assignment]
    return run(task if clip.name == "whole" else replace(task, stall_s=STALL_S), clip)


@pytest.fixture
def driven(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Driven:
    """Drives videos through `dying`, two at a time."""
    monkeypatch.setattr("steadyseg.app.scale.batch.drive.run", dying)

    def drive_all(*names: str) -> dict[str, Row]:
        with closing(LocalPool()) as pool:
            clips = [Clip(name, name) for name in names]
            return {row.name: row for row in drive(pool, clips, BatchTask(tmp_path), 2)}

    return drive_all


@pytest.mark.slow
def test_videos_that_kill_their_workers_are_failed_rows(driven: Driven) -> None:
    rows = driven("poison0", "poison1", "poison2", "whole")
    assert not rows.pop("whole").reason
    found = {(row.tries, row.reason) for row in rows.values()}
    assert len(rows) == 3 and found == {(TRIES, "killed its worker (ended by SIGKILL)")}


@pytest.mark.slow
def test_workers_that_are_not_what_the_driver_is_are_refused(model: str, tmp_path: Path) -> None:
    versions = dict(versions_of(model)) | {"libraries": "torch 2.0.0"}
    clip, options = Clip("whole", "street"), VideoOptions(model=model)
    for folder, said in ((tmp_path, "and this machine torch 2.0.0: results"), (Path("/nowhere"), "has no folder /n")):
        with closing(LocalPool()) as pool:
            task = BatchTask(folder, options=options, versions=tuple(versions.items()))
            assert said in refusal(list, drive(pool, [clip], task))


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
def test_what_freezes_at_a_video_ends_that_worker_and_that_video_alone(model, tmp_path, frozen_file, monkeypatch):
    monkeypatch.setattr("steadyseg.app.scale.batch.drive.run", freezing)
    options = VideoOptions(model=model, compute=ComputeOptions(backend="torch"))
    whole = write_video(tmp_path / "whole.mp4", grey_frames(3))
    files = {"frozen": frozen_file, "whole": whole, "poison": whole}
    clips = [Clip(name, str(path)) for name, path in files.items()]
    task = BatchTask(tmp_path, options=options, versions=versions_of(model))
    with closing(LocalPool()) as pool:
        rows = {row.name: (row.reason, row.tries, row.frames) for row in drive(pool, clips, task)}
    stalled = (f"no new frame for {task.stall_s:g} s; its worker was ended", 1, 0)
    assert rows == {"frozen": stalled, "poison": stalled, "whole": ("", 1, 3)}
    assert not list(tmp_path.glob(".*.begun"))
