"""`steadyseg train` in two processes that torchrun starts: trained, killed and resumed, refused in one line."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from made.trainings import accumulating, boxes_folder, colours_folder, events, wait_for_epochs
from made.waiting import PATIENCE_S

from steadyseg.core.model.checkpoint import load_checkpoint

ROOT = Path(__file__).parents[3]
TORCHRUN = [sys.executable, *"-m torch.distributed.run --standalone --nproc_per_node 2 -m -- steadyseg.app.cli".split()]
EPOCHS = 20


@pytest.fixture(scope="module")
def frames(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Eight pictures, of which some are mostly void."""
    return boxes_folder(tmp_path_factory.mktemp("frames"), 4 * [range(2), range(8)], background=11)


@pytest.fixture(scope="module")
def pictures(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return colours_folder(tmp_path_factory.mktemp("pictures"), {"red": (160, 20, 20), "green": (20, 160, 20)}, 12)


def classification(pictures: Path, run: Path) -> list[str]:
    flags = "--epochs 1 --network resnet18 --channels 2 --batch-size 4 --hold-out 0.25 --dropout 0.3 --device cpu"
    settings = "--config mixup=0.5 size=16 loaders=1"
    return ["train", "classification", "--data", str(pictures), "--run", str(run), *f"{flags} {settings}".split()]


def started(arguments: list[str]) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [*TORCHRUN, *arguments],
        cwd=ROOT,
        env=os.environ | {"OMP_NUM_THREADS": "1"},
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


def finished(arguments: list[str]) -> tuple[int, str, str]:
    """Exit code, stdout and stderr."""
    process = started(arguments)
    try:
        output, errors = process.communicate(timeout=PATIENCE_S)
    finally:
        process.terminate()  # torchrun ends the processes that it started, which lie in sessions of their own
    return process.returncode, output, errors


def said(errors: str) -> list[str]:
    return [line for line in errors.splitlines() if line.startswith("steadyseg: ")]


def killed_after(epochs: int, arguments: list[str], run: Path) -> None:
    process = started(arguments)
    wait_for_epochs(run, epochs, process)
    at_work = process.poll() is None
    process.terminate()
    _, errors = process.communicate(timeout=PATIENCE_S)
    assert at_work, errors


@pytest.mark.long
def test_two_processes_train_a_segmentation_and_go_on_where_they_were_killed(frames: Path, tmp_path: Path) -> None:
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    code, output, errors = finished(accumulating(frames, whole, EPOCHS))
    assert code == 0, errors
    assert output.splitlines() == [str(whole / "model.safetensors")]  # said once
    assert errors.count("8 images, 0 held out, 2 steps an epoch, on cpu in fp32, 2 processes") == 1
    assert [event["event"] for event in events(whole)] == ["step", "step", "epoch"] * EPOCHS

    command = accumulating(frames, killed, EPOCHS)
    killed_after(2, command, killed)
    assert not (killed / "model.safetensors").exists()
    code, _, errors = finished([*command, "--resume"])
    assert code == 0, errors
    (expected, meta), (found, _) = (load_checkpoint(run / "model.safetensors") for run in (whole, killed))
    assert all(torch.equal(expected[name], found[name]) for name in expected)
    assert meta.training["processes"] == 2


@pytest.mark.long
def test_two_processes_train_a_classifier_and_refuse_a_second_run_in_one_line(pictures: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    code, output, errors = finished(classification(pictures, run))
    assert code == 0, errors
    assert output.splitlines() == [str(run / "model.safetensors")]
    logged = events(run)
    assert [event["event"] for event in logged] == ["step", "step", "epoch"]  # 18 pictures, two steps of 2 x 4
    assert logged[-1]["metrics"]["nll"] > 0
    _, meta = load_checkpoint(run / "model.safetensors")
    assert (meta.architecture, meta.training["images"], meta.training["held_out"]) == ("classifier", 18, 6)

    code, _, errors = finished(classification(pictures, run))  # only the first process looks into the folder
    assert code != 0 and len(said(errors)) == 1 and "already holds a training" in said(errors)[0]


@pytest.mark.long
def test_a_loss_that_is_no_number_is_said_once(pictures: Path, tmp_path: Path) -> None:
    flags = "--learning-rate 1e38 --config clip_norm=0 --epochs 3".split()
    code, _, errors = finished([*classification(pictures, tmp_path / "run"), *flags])
    assert code != 0 and len(said(errors)) == 1 and "the loss or its gradient became" in said(errors)[0]
