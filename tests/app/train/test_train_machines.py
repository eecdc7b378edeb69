"""Training on two machines, a torchrun agent each: one is lost with its processes, comes back, and nothing differs."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from made.processes import descendants, free_port
from made.trainings import accumulating, boxes_folder, epochs_logged, wait_for_epochs
from made.waiting import PATIENCE_S

from steadyseg.core.model.checkpoint import load_checkpoint

ROOT = Path(__file__).parents[3]
EPOCHS = 30
SINGLE_PROCESS = {"OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": "lo", "TORCH_DISABLE_SHARE_RDZV_TCP_STORE": "1"}
"""Without the last entry, torch 2.15's surviving agent gives a new agent no address, and both time out after a
minute."""


def agent(port: int, frames: Path, run: Path, keeps_meeting_place: bool) -> "subprocess.Popen[str]":
    """What one machine runs. The one that keeps the meeting place must live: with it torchrun's memory of the run is
    gone."""
    meet = ["--nnodes", "2", "--nproc_per_node", "1", "--max_restarts", "3", "--local_addr", "127.0.0.1"]
    meet += ["--rdzv_backend", "c10d", "--rdzv_endpoint", f"127.0.0.1:{port}", "--rdzv_id", "test"]
    meet += ["--rdzv_conf", f"is_host={int(keeps_meeting_place)}"]
    train = ["steadyseg.app.cli", *accumulating(frames, run, EPOCHS), "--resume"]
    return subprocess.Popen(
        [sys.executable, "-m", "torch.distributed.run", *meet, "-m", "--", *train],
        cwd=ROOT,
        text=True,
        env=os.environ | SINGLE_PROCESS,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )


def lost(machine: "subprocess.Popen[str]") -> None:
    """The agent and its processes are killed at once, as by a power cut."""
    for pid in [machine.pid, *descendants(machine.pid)]:
        os.kill(pid, signal.SIGKILL)
    machine.communicate()


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
            lost(second)
            second = agent(port, frames, run, False)
        said = [machine.communicate(timeout=PATIENCE_S)[0] for machine in (first, second)]
        assert (first.returncode, second.returncode) == (0, 0), said
        weights[name], meta = load_checkpoint(run / "model.safetensors")
        assert meta.training["processes"] == 2 and epochs_logged(run) >= EPOCHS
    assert all(torch.equal(weights["whole"][name], weights["lost"][name]) for name in weights["whole"])
