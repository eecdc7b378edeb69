"""What torchrun starts for tests/core/test_distributed.py: the loop on a small network, and what processes say."""

import json
import math
import sys
from collections.abc import Iterator
from pathlib import Path

import torch
import torch.nn.functional as F
from safetensors.torch import save_file
from torch import Tensor, nn

from steadyseg.core.errors import CheckFailed, InputError
from steadyseg.core.model.checkpoint import CheckpointMeta
from steadyseg.core.training.config import TrainConfig
from steadyseg.core.training.distributed import SINGLE_PROCESS, Processes, join_processes
from steadyseg.core.training.loop import EpochDone, StepDone, dropout_seed, epoch_order, fit
from steadyseg.core.training.parts import Run, TrainingParts

VOID = 9
CPU = torch.device("cpu")
SAMPLES = 26
"""Three steps of eight; two samples are left out."""


def pixels_loss(logits: Tensor, targets: Tensor) -> tuple[Tensor, Tensor]:
    return F.cross_entropy(logits, targets, ignore_index=VOID, reduction="sum"), (targets != VOID).sum()


def pictures() -> tuple[Tensor, Tensor]:
    """Samples of which some are nearly all void, so that the processes have different numbers of pixels that count."""
    generator = torch.Generator().manual_seed(1)
    images = torch.randn(SAMPLES, 3, 6, 5, generator=generator, dtype=torch.float64)
    labels = torch.randint(0, 4, (SAMPLES, 6, 5), generator=generator)
    for i in range(SAMPLES):
        labels[i, : i % 7] = VOID
    return images, labels


def network(unused: bool = False) -> nn.Module:
    torch.manual_seed(0)
    made = nn.Sequential(nn.Conv2d(3, 6, 3, padding=1), nn.Tanh(), nn.Conv2d(6, 4, 1)).double()
    if unused:
        made.spare = nn.Linear(3, 3).double()
        made.forward = lambda x: made[2](made[1](made[0](x)))  # type: ignore[method-assign]
    return made


def trained(
    settings: TrainConfig, run: Path, processes: Processes = SINGLE_PROCESS, *, poison: int = -1, unused: bool = False
) -> tuple[nn.Module, list[float], list[dict[str, float]]]:
    """The network after the loop, the losses of its steps and what its epochs measured.

    `poison`: the process whose second step is no number.
    """
    images, labels = pictures()
    made = network(unused=unused)
    step_size = settings.batch_size * settings.accumulate * processes.count

    def batches(epoch: int) -> Iterator[tuple[Tensor, Tensor]]:
        order = torch.tensor(epoch_order(SAMPLES, settings, epoch, processes))
        for number, chosen in enumerate(order.split(settings.batch_size)):
            spoilt = processes.rank == poison and number >= settings.accumulate
            yield images[chosen] * (math.nan if spoilt else 1.0), labels[chosen]

    def describe(seconds: float) -> CheckpointMeta:
        raise NotImplementedError("no checkpoint is written")

    parts = TrainingParts(
        made,
        batches,
        pixels_loss,
        steps_per_epoch=SAMPLES // step_size,
        images=SAMPLES,
        held_out=0,
        describe=describe,
        evaluate=lambda _: {"rank": float(processes.rank)},
    )
    events = list(fit(parts, settings, Run(run, CPU, processes)))
    losses = [event.loss for event in events if isinstance(event, StepDone)]
    return made, losses, [event.metrics for event in events if isinstance(event, EpochDone)]


def main(out: Path, jobs: dict[str, dict[str, object]]) -> None:
    """Every job in a folder of its own; starting the processes is what takes long."""
    with join_processes("cpu") as processes:
        assert processes.count == 2
        for name, settings in jobs.items():
            (out / name).mkdir(exist_ok=True)
            work(name, out / name, TrainConfig(**settings), processes)  # type: ignore[arg-type]


def work(name: str, out: Path, loop: TrainConfig, processes: Processes) -> None:
    if name == "talk":
        talk(processes, out)
    elif name == "poison":
        try:
            trained(loop, out / "run", processes, poison=1)
        except CheckFailed as error:
            (out / f"stopped{processes.rank}.txt").write_text(str(error))
    else:
        made, losses, measured = trained(loop, out / "run", processes, unused=name == "unused")
        weights = {name: tensor.contiguous() for name, tensor in made.state_dict().items()}
        save_file(weights, out / f"weights{processes.rank}.safetensors")
        (out / f"losses{processes.rank}.json").write_text(json.dumps(losses))
        (out / f"measured{processes.rank}.json").write_text(json.dumps(measured))


def talk(processes: Processes, out: Path) -> None:
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
    said = {
        "sums": processes.sums(1.5, processes.rank + 1),
        "nan": processes.sums(math.nan if processes.rank else 1.0),
        "gathered": processes.all_gather(f"rank {processes.rank}"),
        "together": processes.together(lambda: processes.rank),
        "ended": ended,
        "masks": masks,
    }
    processes.wait()
    (out / f"said{processes.rank}.json").write_text(json.dumps(said))


if __name__ == "__main__":
    main(Path(sys.argv[1]), json.loads(sys.argv[2]))
