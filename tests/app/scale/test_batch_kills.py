"""Batches whose worker or driver is really killed (-9), on both engines: nothing is lost, nothing is made twice."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from made.batches import contents, rows
from made.processes import workers_of
from made.video import write_video
from made.waiting import PATIENCE_S, wait_for

PROJECT = Path(__file__).parents[3]
VIDEOS, FRAMES = 12, 30
ENGINES = ("local", "ray")


@pytest.fixture(scope="module")
def videos(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("videos")
    for seed in range(VIDEOS):
        noise = np.random.default_rng(seed).integers(0, 255, (FRAMES, 96, 128, 3), np.uint8)
        write_video(folder / f"clip{seed:02}.mp4", list(noise))
    return folder


def started(videos: Path, out: Path, model: str, engine: str, *flags: object) -> "subprocess.Popen[str]":
    where = [videos, "-o", out, "--masks", "--model", model, "--backend", "torch"]
    ray = ["--ray", "local"] if engine == "ray" else []
    command = [sys.executable, "-m", "steadyseg.app.cli", "batch", *where, *ray, *flags]
    return subprocess.Popen(
        [str(word) for word in command], cwd=PROJECT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def finished(videos: Path, out: Path, model: str, engine: str, *flags: object) -> dict[str, object]:
    """The summary of a run that nothing happens to any more."""
    process = started(videos, out, model, engine, *flags)
    said, errors = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 0, said + errors
    return dict(json.loads((out / "summary.json").read_text()))


def done(out: Path) -> list[str]:
    return sorted(path.name for path in out.glob("clip*")) if out.exists() else []


def left_in(out: Path) -> list[Path]:
    """Hidden files and folders of videos that were begun and not ended."""
    return [path for path in out.glob(".*") if path.name != ".lock"]


@pytest.fixture(scope="module")
def untouched(videos: Path, model: str, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """What a run makes to which nothing happens."""
    out = tmp_path_factory.mktemp("untouched")
    summary = finished(videos, out, model, "local")
    assert (summary["done"], summary["frames"], summary["tried_again"]) == (VIDEOS, VIDEOS * FRAMES, 0)
    assert rows(out) == VIDEOS * FRAMES
    return contents(out)


@pytest.mark.long
@pytest.mark.parametrize("engine", ENGINES)
def test_killed_workers_and_drivers_cost_nothing(videos, model, tmp_path, untouched, engine):
    out, moments = tmp_path / "out", np.random.default_rng(0)
    first = started(videos, out, model, engine)
    wait_for(lambda: done(out))
    os.kill(wait_for(lambda: workers_of(first.pid))[0], signal.SIGKILL)
    wait_for(lambda: len(done(out)) >= 3)
    time.sleep(moments.uniform(0, 0.3))
    left = workers_of(first.pid)  # two agents of Ray outlive its daemon by minutes
    first.kill()
    first.communicate()
    wait_for(lambda: not any(Path(f"/proc/{pid}").exists() for pid in left))
    before = {name: (out / name).stat().st_ino for name in done(out)}
    assert len(before) < VIDEOS
    summary = finished(videos, out, model, engine)
    assert summary["skipped"] == len(before) and summary["done"] == VIDEOS - len(before)
    assert {name: (out / name).stat().st_ino for name in before} == before
    assert contents(out) == untouched and rows(out) == VIDEOS * FRAMES
    assert not left_in(out)


@pytest.mark.long
def test_ctrl_c_ends_it_with_what_is_whole(videos: Path, model: str, tmp_path: Path) -> None:
    out = tmp_path / "out"
    first = started(videos, out, model, "local")
    wait_for(lambda: len(done(out)) >= 3)
    first.send_signal(signal.SIGINT)
    _, errors = first.communicate(timeout=PATIENCE_S)
    assert first.returncode == 130 and "run it again to go on" in errors and "Traceback" not in errors
    summary = json.loads((out / "summary.json").read_text())
    whole = len(done(out))  # a worker may be ended between a folder's name and its word to the driver
    assert 0 < summary["done"] <= whole < VIDEOS and not left_in(out)
