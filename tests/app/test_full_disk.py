"""A disk that is really full, a file system of 2 MB: one line, exit code 1, and what was written is whole."""

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from made.batches import contents
from made.trainings import TINY_SEGMENTATION, boxes_folder, epochs_logged
from made.video import write_video
from PIL import Image
from refusals import error_after_work, refusal
from safetensors.torch import load_file

from steadyseg.app.cli import main
from steadyseg.app.sources.open_source import open_source
from steadyseg.app.train.command import run_log, write_event
from steadyseg.core.training.loop import EpochDone

DISK_BYTES = 2 * 2**20


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """An empty file system of 2 MB."""
    if os.name != "posix" or os.geteuid() != 0:
        pytest.skip("only root can mount a small file system")
    place = tmp_path / "disk"
    place.mkdir()
    made = subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={DISK_BYTES}", "tmpfs", place], capture_output=True)
    if made.returncode:
        pytest.skip(f"no small file system can be mounted here: {made.stderr.decode().strip()}")
    yield place
    subprocess.run(["umount", place], check=True)


def fill(disk: Path, free_bytes: int) -> Path:
    """Takes all but so many bytes of what is left."""
    left = os.statvfs(disk)
    ballast = disk / "ballast"
    ballast.write_bytes(bytes(left.f_bavail * left.f_frsize - free_bytes))
    return ballast


@pytest.mark.slow
def test_a_video_plays_up_to_where_the_disk_was_full(disk, tmp_path, capsys):
    noise = tmp_path / "noise"
    noise.mkdir()
    for number in range(60):
        picture = np.random.default_rng(number).integers(0, 255, (192, 256, 3), np.uint8)
        Image.fromarray(picture).save(noise / f"{number:02}.png")
    output, masks = disk / "out.mp4", disk / "masks"
    arguments = ["video", str(noise), "-o", output, "--masks", masks, "--model", "street-tiny"]
    line = error_after_work(capsys, *arguments, "--report", tmp_path / "report.json", code=1)
    assert f"{output}: cannot be written (No space left on device)" in line
    assert sorted(path.name for path in disk.iterdir()) == ["masks", "out.mp4"]
    with open_source(str(output)) as source:
        written = len(list(source))
        assert 10 < written < 60 and not +source.losses
    assert json.loads((tmp_path / "report.json").read_text())["frames"] in (
        written - 1,
        written,
    )  # before its masks or after
    pictures = list(masks.glob("*.png"))
    assert len(pictures) <= 2 * written
    for picture in pictures:
        Image.open(picture).load()


@pytest.mark.long
def test_a_batch_keeps_the_videos_that_were_done(disk, model, tmp_path, capsys):
    videos, out, frames = tmp_path / "videos", disk / "out", 30
    videos.mkdir()
    for seed in range(12):
        noise = np.random.default_rng(seed).integers(0, 255, (frames, 96, 128, 3), np.uint8)
        write_video(videos / f"clip{seed:02}.mp4", noise)
    fill(disk, 1_500_000)
    words = ["batch", videos, "-o", out, "--masks", "--model", model, "--backend", "torch"]
    assert "No space left on device" in error_after_work(capsys, *words, code=1)
    done = len(list(out.glob("clip*")))
    assert 0 < done < 12 and [path.name for path in out.glob(".*")] == [".lock"]
    assert len(contents(out)) == done * (2 * frames + 1)


@pytest.mark.slow
def test_a_training_keeps_the_last_state_and_goes_on_from_it(disk, tmp_path, capsys):
    data, run = boxes_folder(tmp_path / "data", 4 * [range(1, 12)], background=0), disk / "run"
    arguments = ["train", "seg", "--data", data, "--run", run, *TINY_SEGMENTATION, "--device", "cpu", "--epochs", "4"]
    ballast = fill(disk, 1_100_000)  # a state has 770 kB: one state fits, two do not
    line = error_after_work(capsys, *arguments, code=1)
    assert f"{run / 'state.safetensors'}: cannot be written (No space left on device)" in line
    assert epochs_logged(run) >= 1 and not list(run.glob(".*.*"))
    assert all(tensor.isfinite().all() for tensor in load_file(run / "state.safetensors").values())
    ballast.unlink()
    assert main([str(argument) for argument in [*arguments, "--resume"]]) == 0
    assert (run / "model.safetensors").is_file() and epochs_logged(run) == 4


def test_a_log_that_the_disk_cut_off_is_taken_up_where_it_was_whole(tmp_path: Path) -> None:
    (tmp_path / "log.jsonl").write_text('{"event": "step"}\n{"event": "ep')
    with run_log(tmp_path) as log:
        write_event(log, EpochDone(1, 0.5, 2.0, {}))
    assert [line[:15] for line in (tmp_path / "log.jsonl").read_text().splitlines()] == [
        '{"event": "step',
        '{"event": "epoc',
    ]


@pytest.mark.parametrize("kind", ["link", "loose end", "folder", "pipe"])
def test_a_log_that_is_no_file_of_the_run_is_refused(tmp_path: Path, kind: str) -> None:
    """A resumed folder of a stranger cut off the last line of the file that its log.jsonl points to."""
    run, other = tmp_path / "run", tmp_path / "other.txt"
    run.mkdir()
    if kind == "link":
        other.write_text("one\ntwo")
    {"folder": lambda: (run / "log.jsonl").mkdir(), "pipe": lambda: os.mkfifo(run / "log.jsonl")}.get(
        kind, lambda: (run / "log.jsonl").symlink_to(other)
    )()
    assert "log.jsonl: is a link or no regular file" in refusal(lambda: run_log(run))
    assert not other.exists() or other.read_text() == "one\ntwo"
