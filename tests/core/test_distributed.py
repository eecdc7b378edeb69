"""Two processes that torchrun started do the steps of one with twice the batch, and end together."""

import json
import math
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from distributed_worker import SAMPLES, trained
from made.waiting import PATIENCE_S
from safetensors.torch import load_file
from torch import Tensor, nn

from steadyseg.core.errors import InputError
from steadyseg.core.seeds import mix_seed
from steadyseg.core.training.config import TrainConfig
from steadyseg.core.training.distributed import SINGLE_PROCESS, Processes, synchronise
from steadyseg.core.training.loop import dropout_seed, epoch_order
from steadyseg.seg.networks.build import build_network
from steadyseg.seg.options import SmpOptions

ROOT = Path(__file__).parents[2]
SETTINGS: dict[str, Any] = {
    "epochs": 3,
    "batch_size": 4,
    "precision": "fp32",
    "schedule": "one-cycle",
    "learning_rate": 0.05,
    "clip_norm": 0.1,
    "average_decay": 0.9,
    "weight_decay": 0.01,
    "evaluate_every": 1,
    "optimizer": "sgd",
}


JOBS: dict[str, dict[str, Any]] = {
    "plain": SETTINGS,
    "accumulated": SETTINGS | {"accumulate": 3, "batch_size": 2},
    "unused": SETTINGS,
    "poison": SETTINGS,
    "talk": {},
}


@pytest.fixture(scope="module")
def spread(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What two processes made of every job, in a folder of its name."""
    out = tmp_path_factory.mktemp("two")
    command = [
        sys.executable,
        "-m",
        "torch.distributed.run",
        "--standalone",
        "--nproc_per_node",
        "2",
        str(ROOT / "tests/core/distributed_worker.py"),
        str(out),
        json.dumps(JOBS),
    ]
    environment = os.environ | {"PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S, cwd=ROOT, env=environment)
    assert done.returncode == 0, done.stderr
    assert "find_unused_parameters" not in done.stderr
    return out


def alone(job: str, out: Path, **options: Any) -> tuple[nn.Module, list[float]]:
    """One process with twice the batch."""
    settings = JOBS[job]
    made, losses, _ = trained(TrainConfig(**settings | {"batch_size": 2 * settings["batch_size"]}), out, **options)
    return made, losses


def assert_near(found: dict[str, Tensor], network: nn.Module) -> None:
    expected = network.state_dict()
    assert found.keys() == expected.keys()
    for name, tensor in expected.items():
        torch.testing.assert_close(found[name], tensor, rtol=0, atol=1e-6)


# alone


def test_one_process_needs_nobody() -> None:
    assert SINGLE_PROCESS.is_main and SINGLE_PROCESS.all_gather("x") == ["x"]
    assert SINGLE_PROCESS.sums(1.0, 2.5) == (1.0, 2.5)
    assert SINGLE_PROCESS.together(lambda: 3) == 3
    SINGLE_PROCESS.wait()

    def refuse() -> None:
        raise InputError("no")

    with pytest.raises(InputError, match="no"):
        SINGLE_PROCESS.together(refuse)


@pytest.mark.parametrize(("count", "accumulate"), [(2, 1), (3, 2)])
def test_shares_together_are_the_bigger_batches_of_one_process(count: int, accumulate: int) -> None:
    small = TrainConfig(batch_size=2, accumulate=accumulate)
    big = TrainConfig(batch_size=2 * count, accumulate=accumulate)
    shares = [torch.tensor(epoch_order(29, small, 5, Processes(rank, count))).split(2) for rank in range(count)]
    whole = torch.tensor(epoch_order(29, big, 5, SINGLE_PROCESS)).split(2 * count)
    assert len(whole) == 29 // (2 * count * accumulate) * accumulate
    for number, batch in enumerate(whole):
        assert torch.cat([share[number] for share in shares]).tolist() == batch.tolist()


def test_the_order_of_one_process_is_that_of_the_seed_and_epoch() -> None:
    order = epoch_order(10, TrainConfig(batch_size=4, seed=7), 2, SINGLE_PROCESS)
    drawn = torch.randperm(10, generator=torch.Generator().manual_seed(mix_seed(7, 2)))
    assert order == drawn[:8].tolist()


def test_dropout_differs_between_processes_and_the_first_ones_is_that_of_one() -> None:
    assert dropout_seed(1, 2, 3, 0) == mix_seed(1, 2, 3)
    assert len({dropout_seed(1, 2, 3, rank) for rank in range(5)}) == 5


@pytest.mark.parametrize("encoder", ["resnet18", "tu-regnetx_002"])  # the latter's BatchNorms hold the activation
def test_synchronised_statistics_leave_a_network_what_it_is(encoder: str) -> None:
    torch.manual_seed(0)
    options = SmpOptions(encoder=encoder, decoder_dropout=0.0)
    network, x = build_network("smp", options, 11).eval(), torch.rand(1, 3, 64, 64)
    expected, names, count = network(x), list(network.state_dict()), len(list(network.modules()))
    found = synchronise(network).eval()
    assert list(found.state_dict()) == names and len(list(found.modules())) == count
    assert any(isinstance(module, nn.SyncBatchNorm) for module in found.modules())
    assert not any(isinstance(module, nn.BatchNorm2d) for module in found.modules())
    torch.testing.assert_close(found(x), expected)


# two processes


@pytest.mark.slow
@pytest.mark.parametrize("job", ["plain", "accumulated"])
def test_two_processes_give_the_weights_of_one_with_twice_the_batch(spread: Path, tmp_path: Path, job: str) -> None:
    network, losses = alone(job, tmp_path)
    assert len(losses) == 3 * (2 if job == "accumulated" else 3) and SAMPLES == 26
    for rank in range(2):
        assert_near(load_file(spread / job / f"weights{rank}.safetensors"), network)
        assert json.loads((spread / job / f"losses{rank}.json").read_text()) == pytest.approx(losses, abs=1e-9)


@pytest.mark.slow
def test_the_first_process_alone_evaluates(spread: Path) -> None:
    assert json.loads((spread / "plain" / "measured0.json").read_text()) == [{"rank": 0.0}] * 3
    assert json.loads((spread / "plain" / "measured1.json").read_text()) == [{}] * 3


@pytest.mark.slow
def test_weights_that_no_pass_uses_do_no_harm(spread: Path, tmp_path: Path) -> None:
    network, _ = alone("unused", tmp_path, unused=True)
    assert_near(load_file(spread / "unused" / "weights0.safetensors"), network)


@pytest.mark.slow
def test_a_loss_that_is_no_number_in_one_process_stops_both_at_its_step(spread: Path) -> None:
    for rank in range(2):
        assert "epoch 1, step 2" in (spread / "poison" / f"stopped{rank}.txt").read_text()
    assert not (spread / "poison" / "run" / "state.safetensors").exists()


@pytest.mark.slow
def test_what_processes_say_to_each_other(spread: Path) -> None:
    first, second = (json.loads((spread / "talk" / f"said{rank}.json").read_text()) for rank in range(2))
    assert first["sums"] == second["sums"] == [3.0, 3.0]
    assert math.isnan(first["nan"][0]) and math.isnan(second["nan"][0])
    assert first["gathered"] == second["gathered"] == ["rank 0", "rank 1"]
    assert (first["together"], second["together"]) == (0, 1)
    assert (first["ended"], second["ended"]) == ("not here", "exit 2")  # said once
    assert first["masks"] != second["masks"]


# a frozen process


def started(rank: int, port: int, meeting: Path) -> "subprocess.Popen[str]":
    """Starts a process as torchrun does."""
    environment = os.environ | {
        "PYTHONPATH": str(ROOT),
        "RANK": str(rank),
        "LOCAL_RANK": str(rank),
        "WORLD_SIZE": "2",
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(port),
        "TORCHELASTIC_RUN_ID": "frozen",
    }
    command = [sys.executable, str(ROOT / "tests/core/frozen_worker.py"), str(meeting)]
    return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="freezes a process by SIGSTOP")
def test_a_frozen_process_is_found_and_one_that_evaluates_is_waited_for(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as one:
        port = one.getsockname()[1]
    first, second = (started(rank, port, tmp_path) for rank in range(2))
    try:
        said, errors = first.communicate(timeout=PATIENCE_S)
        assert first.returncode == 1, errors
        lines = [line for line in said.splitlines() if not line.startswith("[Gloo]")]
        assert lines[0] == "met" and len(lines) == 2
        assert (
            lines[1].startswith("process 0: another one has ended, or has not answered for") and "--resume" in lines[1]
        )
        second.send_signal(signal.SIGCONT)  # it wakes up and finds that the other process is gone
        said, errors = second.communicate(timeout=PATIENCE_S)
        assert second.returncode == 1 and "process 1: another one has ended" in said, errors
    finally:
        first.kill()
        second.kill()
