"""`steadyseg train` under torchrun: two machines, an agent each, one of which is lost; two processes of one machine."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from made.processes import descendants, free_port
from made.trainings import accumulating, boxes_folder, colours_folder, epochs_logged, events, wait_for_epochs
from made.waiting import PATIENCE_S

from steadyseg.core.model.checkpoint import load_checkpoint

ROOT = Path(__file__).parents[3]
EPOCHS = 30
ONE_MACHINE = {"OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": "lo", "TORCH_DISABLE_SHARE_RDZV_TCP_STORE": "1"}
"""Without the last entry, torch 2.15's surviving agent gives a new agent no address: both time out."""
TORCHRUN = [sys.executable, "-m", "torch.distributed.run"]


def agent(port: int, frames: Path, run: Path, keeps_meeting_place: bool) -> "subprocess.Popen[str]":
    """What one machine runs. The one that keeps the meeting place must live, or torchrun forgets the run."""
    meet = ["--nnodes", "2", "--nproc_per_node", "1", "--max_restarts", "3", "--local_addr", "127.0.0.1"]
    meet += ["--rdzv_backend", "c10d", "--rdzv_endpoint", f"127.0.0.1:{port}", "--rdzv_id", "test"]
    meet += ["--rdzv_conf", f"is_host={int(keeps_meeting_place)}"]
    command = [*TORCHRUN, *meet, "-m", "--", "steadyseg.app.cli", *accumulating(frames, run, EPOCHS), "--resume"]
    how = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
    return subprocess.Popen(command, cwd=ROOT, env=os.environ | ONE_MACHINE, **how)


@pytest.mark.long
def test_a_machine_that_is_lost_and_comes_back_changes_nothing(tmp_path: Path) -> None:
    frames = boxes_folder(tmp_path / "frames", 4 * [range(2), range(8)], background=11)
    weights = {}
    for name, loses in (("whole", False), ("lost", True)):
        run, port = tmp_path / name, free_port()
        first = agent(port, frames, run, True)
        second = agent(port, frames, run, False)
        if loses:
            wait_for_epochs(run, 3, first)
            assert first.poll() is None and not (run / "model.safetensors").exists()
            for pid in [second.pid, *descendants(second.pid)]:  # at once, as by a power cut
                os.kill(pid, signal.SIGKILL)
            second.communicate()
            second = agent(port, frames, run, False)
        said = "".join(machine.communicate(timeout=PATIENCE_S)[0] for machine in (first, second))
        assert (first.returncode, second.returncode) == (0, 0), said
        weights[name], meta = load_checkpoint(run / "model.safetensors")
        assert meta.training["processes"] == 2 and epochs_logged(run) >= EPOCHS
        if not loses:  # each word comes once
            assert said.splitlines().count(str(run / "model.safetensors")) == 1
            assert said.count("8 images, 0 held out, 2 steps an epoch, on cpu in fp32, 2 processes") == 1
            assert [event["event"] for event in events(run)] == ["step", "step", "epoch"] * EPOCHS
    assert all(torch.equal(weights["whole"][name], weights["lost"][name]) for name in weights["whole"])


def finished(pictures: Path, run: Path, *more: str) -> tuple[int, str, list[str], str]:
    """Exit code, stdout, the refusals and all of stderr of a classification in two processes."""
    flags = "--epochs 1 --network resnet18 --channels 2 --batch-size 4 --hold-out 0.25 --dropout 0.3 --device cpu"
    settings = "--config mixup=0.5 size=16 loaders=1"
    words = ["train", "classification", "--data", pictures, "--run", run, *f"{flags} {settings}".split(), *more]
    command = [*TORCHRUN, *"--standalone --nproc_per_node 2 -m -- steadyseg.app.cli".split(), *map(str, words)]
    how = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    process = subprocess.Popen(command, cwd=ROOT, env=os.environ | {"OMP_NUM_THREADS": "1"}, **how)
    try:
        output, errors = process.communicate(timeout=PATIENCE_S)
    finally:
        process.terminate()  # torchrun ends the processes that it started, which lie in sessions of their own
    return process.returncode, output, [one for one in errors.splitlines() if one.startswith("steadyseg: ")], errors


@pytest.mark.long
def test_two_processes_train_a_classifier_and_say_each_error_once(tmp_path: Path) -> None:
    colours = {"red": (160, 20, 20), "green": (20, 160, 20)}
    pictures, run = colours_folder(tmp_path / "pictures", colours, 12), tmp_path / "run"
    code, output, _, errors = finished(pictures, run)
    assert code == 0, errors
    assert output.splitlines() == [str(run / "model.safetensors")]
    logged = events(run)
    assert [event["event"] for event in logged] == ["step", "step", "epoch"]  # 18 pictures, two steps of 2 x 4
    assert logged[-1]["metrics"]["nll"] > 0
    _, meta = load_checkpoint(run / "model.safetensors")
    assert (meta.architecture, meta.training["images"], meta.training["held_out"]) == ("classifier", 18, 6)
    code, _, (line,), _ = finished(pictures, run)  # only the first process looks into the folder
    assert code and "already holds a training" in line
    no_number = "--learning-rate 1e38 --config clip_norm=0 --epochs 3".split()
    code, _, (line,), _ = finished(pictures, tmp_path / "other", *no_number)
    assert code and "the loss or its gradient became" in line
