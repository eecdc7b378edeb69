"""Two processes that torchrun started do the steps of one with twice the batch, and end together.

As a script, this file is what torchrun starts.
"""

import json
import math
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from made.trainings import made_parts
from made.waiting import PATIENCE_S
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from steadyseg.core.errors import CheckFailed, InputError
from steadyseg.core.seeds import mix_seed
from steadyseg.core.training import distributed
from steadyseg.core.training.config import TrainConfig
from steadyseg.core.training.distributed import SINGLE_PROCESS, Processes, join_processes, synchronise
from steadyseg.core.training.loop import EpochDone, StepDone, dropout_seed, epoch_order, fit
from steadyseg.core.training.parts import Run
from steadyseg.seg.networks.build import build_network
from steadyseg.seg.options import SmpOptions

ROOT = Path(__file__).parents[2]
PATHS = {"PYTHONPATH": f"{ROOT}{os.pathsep}{ROOT / 'tests'}", "OMP_NUM_THREADS": "1"}
VOID, SAMPLES = 9, 26  # three steps of eight samples; two are left out
FROZEN_S = 3.0
SETTINGS: dict[str, Any] = {"epochs": 3, "batch_size": 4, "precision": "fp32", "schedule": "one-cycle"}
SETTINGS |= {"learning_rate": 0.05, "clip_norm": 0.1, "average_decay": 0.9, "weight_decay": 0.01}
SETTINGS |= {"evaluate_every": 1, "optimizer": "sgd"}
JOBS: dict[str, dict[str, Any]] = dict.fromkeys(("plain", "poison"), SETTINGS)
JOBS |= {"accumulated": SETTINGS | {"accumulate": 3, "batch_size": 2}, "talk": {}}


def pixels_loss(logits: Tensor, targets: Tensor) -> tuple[Tensor, Tensor]:
    return F.cross_entropy(logits, targets, ignore_index=VOID, reduction="sum"), (targets != VOID).sum()


def network() -> nn.Module:
    """It has weights that no pass uses."""
    torch.manual_seed(0)
    made = nn.Sequential(nn.Conv2d(3, 6, 3, padding=1), nn.Tanh(), nn.Conv2d(6, 4, 1), nn.Linear(3, 3)).double()
    made.forward = lambda x: made[2](made[1](made[0](x)))
    return made


def trained(
    settings: TrainConfig, run: Path, processes: Processes = SINGLE_PROCESS, poison: int = -1
) -> tuple[nn.Module, list[float], list[dict[str, float]]]:
    """The network after the loop, the losses of its steps and what its epochs measured.

    Some samples are nearly all void: the processes have different numbers of pixels that count. `poison`: the process
    whose second step is no number.
    """
    generator = torch.Generator().manual_seed(1)
    images = torch.randn(SAMPLES, 3, 6, 5, generator=generator, dtype=torch.float64)
    labels = torch.randint(0, 4, (SAMPLES, 6, 5), generator=generator)
    for i in range(SAMPLES):
        labels[i, : i % 7] = VOID

    def batches(epoch: int) -> Iterator[tuple[Tensor, Tensor]]:
        order = torch.tensor(epoch_order(SAMPLES, settings, epoch, processes))
        for number, chosen in enumerate(order.split(settings.batch_size)):
            spoilt = processes.rank == poison and number >= settings.accumulate
            yield images[chosen] * (math.nan if spoilt else 1.0), labels[chosen]

    made, steps = network(), SAMPLES // (settings.batch_size * settings.accumulate * processes.count)
    parts = made_parts(made, batches, pixels_loss, steps, evaluate=lambda _: {"rank": float(processes.rank)})
    events = list(fit(parts, settings, Run(run, torch.device("cpu"), processes)))
    losses = [event.loss for event in events if isinstance(event, StepDone)]
    return made, losses, [event.metrics for event in events if isinstance(event, EpochDone)]


def work(name: str, out: Path, processes: Processes) -> None:
    """A job in a folder of its own."""
    out.mkdir(exist_ok=True)
    loop = TrainConfig(**JOBS[name])
    if name == "talk":
        (out / f"said{processes.rank}.json").write_text(json.dumps(talk(processes)))
    elif name == "poison":
        try:
            trained(loop, out / "run", processes, poison=1)
        except CheckFailed as error:
            (out / f"stopped{processes.rank}.txt").write_text(str(error))
    else:
        made, *told = trained(loop, out / "run", processes)
        weights = {name: tensor.contiguous() for name, tensor in made.state_dict().items()}
        save_file(weights, out / f"weights{processes.rank}.safetensors")
        (out / f"told{processes.rank}.json").write_text(json.dumps(told))


def talk(processes: Processes) -> dict[str, Any]:
    """Everything the processes say to each other."""

    def only_first() -> None:
        if processes.is_main:
            raise InputError("not here")

    try:
        processes.together(only_first)
        ended = "went on"
    except InputError as error:
        ended = str(error)
    except SystemExit as stop:
        ended = f"exit {stop.code}"
    masks = torch.manual_seed(dropout_seed(3, 1, 4, processes.rank)) and torch.rand(2).tolist()
    processes.wait()
    return {
        "sums": processes.sums(1.5, processes.rank + 1),
        "nan": processes.sums(math.nan if processes.rank else 1.0),
        "gathered": processes.all_gather(f"rank {processes.rank}"),
        "together": processes.together(lambda: processes.rank),
        "ended": ended,
        "masks": masks,
    }


def freeze(here: Path) -> None:
    """Rank 0 works alone for longer than the time limit, and then rank 1 freezes."""
    (here / os.environ["RANK"]).touch()
    while len(list(here.iterdir())) < 2:  # both have imported torch: joining is within the patience too
        time.sleep(0.01)
    distributed.PATIENCE = timedelta(seconds=FROZEN_S)
    try:
        with join_processes("cpu") as processes:
            if processes.is_main:
                time.sleep(1.5 * FROZEN_S)  # evaluates
            processes.wait()
            print("met", flush=True)
            if not processes.is_main:
                os.kill(os.getpid(), signal.SIGSTOP)
            processes.sums(1.0)
    except CheckFailed as error:
        print(error)
        sys.exit(1)


@pytest.fixture(scope="module")
def spread(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What two processes made of every job, in a folder of its name. Starting the processes is what takes long."""
    out = tmp_path_factory.mktemp("two")
    command = [sys.executable, *"-m torch.distributed.run --standalone --nproc_per_node 2".split(), __file__, str(out)]
    environment = os.environ | PATHS
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S, cwd=ROOT, env=environment)
    assert done.returncode == 0, done.stderr
    assert "find_unused_parameters" not in done.stderr
    return out


@pytest.mark.parametrize(("count", "accumulate"), [(2, 1), (3, 2)])
def test_shares_together_are_the_bigger_batches_of_one_process(count: int, accumulate: int) -> None:
    small = TrainConfig(batch_size=2, accumulate=accumulate)
    big = TrainConfig(batch_size=2 * count, accumulate=accumulate)
    shares = [torch.tensor(epoch_order(29, small, 5, Processes(rank, count))).split(2) for rank in range(count)]
    whole = torch.tensor(epoch_order(29, big, 5, SINGLE_PROCESS)).split(2 * count)
    assert len(whole) == 29 // (2 * count * accumulate) * accumulate
    for number, batch in enumerate(whole):
        assert torch.cat([share[number] for share in shares]).tolist() == batch.tolist()


def test_the_order_and_the_dropout_of_one_process_are_of_seed_and_epoch() -> None:
    order = epoch_order(10, TrainConfig(batch_size=4, seed=7), 2, SINGLE_PROCESS)
    drawn = torch.randperm(10, generator=torch.Generator().manual_seed(mix_seed(7, 2)))
    assert order == drawn[:8].tolist()
    assert dropout_seed(1, 2, 3, 0) == mix_seed(1, 2, 3)
    assert len({dropout_seed(1, 2, 3, rank) for rank in range(5)}) == 5


@pytest.mark.parametrize("encoder", ["resnet18", "tu-regnetx_002"])  # the latter's BatchNorms hold the activation
def test_synchronised_statistics_leave_a_network_what_it_is(encoder: str) -> None:
    torch.manual_seed(0)
    options = SmpOptions(encoder=encoder, decoder_dropout=0.0)
    plain, x = build_network("smp", options, 11).eval(), torch.rand(1, 3, 64, 64)
    expected, names, count = plain(x), list(plain.state_dict()), len(list(plain.modules()))
    found = synchronise(plain).eval()
    assert list(found.state_dict()) == names and len(list(found.modules())) == count
    assert any(isinstance(module, nn.SyncBatchNorm) for module in found.modules())
    assert not any(isinstance(module, nn.BatchNorm2d) for module in found.modules())
    torch.testing.assert_close(found(x), expected)


@pytest.mark.slow
@pytest.mark.parametrize("job", ["plain", "accumulated"])
def test_two_processes_give_the_weights_of_one_with_twice_the_batch(spread: Path, tmp_path: Path, job: str) -> None:
    """The first process alone evaluates."""
    settings = TrainConfig(**JOBS[job] | {"batch_size": 2 * JOBS[job]["batch_size"]})
    made, losses, _ = trained(settings, tmp_path)
    assert len(losses) == 3 * (2 if job == "accumulated" else 3)
    for rank in range(2):
        found = load_file(spread / job / f"weights{rank}.safetensors")
        torch.testing.assert_close(found, dict(made.state_dict()), rtol=0, atol=1e-6)
        theirs, measured = json.loads((spread / job / f"told{rank}.json").read_text())
        assert theirs == pytest.approx(losses, abs=1e-9) and measured == [{} if rank else {"rank": 0.0}] * 3


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


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="freezes a process by SIGSTOP")
def test_a_frozen_process_is_found_and_one_that_evaluates_is_waited_for(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as one:
        meeting = PATHS | {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(one.getsockname()[1])}
    meeting |= {"WORLD_SIZE": "2", "TORCHELASTIC_RUN_ID": "frozen"}
    first, second = (
        subprocess.Popen(
            [sys.executable, __file__, "freeze", str(tmp_path)],
            env=os.environ | meeting | {"RANK": str(rank), "LOCAL_RANK": str(rank)},  # as torchrun starts it
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for rank in range(2)
    )
    try:
        said, errors = first.communicate(timeout=PATIENCE_S)
        assert first.returncode == 1, errors
        met, line = [line for line in said.splitlines() if not line.startswith("[Gloo]")]
        assert met == "met" and "--resume" in line
        assert line.startswith("process 0: another one has ended, or has not answered for")
        second.send_signal(signal.SIGCONT)  # it wakes up and finds that the other process is gone
        said, errors = second.communicate(timeout=PATIENCE_S)
        assert second.returncode == 1 and "process 1: another one has ended" in said, errors
    finally:
        first.kill()
        second.kill()


if __name__ == "__main__":
    if sys.argv[1] == "freeze":
        freeze(Path(sys.argv[2]))
    else:
        with join_processes("cpu") as both:
            assert both.count == 2
            for job in JOBS:
                work(job, Path(sys.argv[1]) / job, both)
