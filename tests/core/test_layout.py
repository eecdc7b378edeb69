"""Narrow networks train rightly on every processor: oneDNN's flaw in strided 1x1 convolutions is gone around."""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
import torch
from made.trainings import CPU, made_parts
from made.waiting import PATIENCE_S
from torch import Tensor, nn

from steadyseg.core.system.machine import training_precision
from steadyseg.core.training.config import TrainConfig
from steadyseg.core.training.layout import use_channels_last
from steadyseg.core.training.loop import fit
from steadyseg.core.training.parts import Run
from steadyseg.runtime.number_format import resolve_precision

ROOT = Path(__file__).parents[2]


def narrow(channels: int) -> nn.Sequential:
    torch.manual_seed(0)
    return nn.Sequential(
        nn.Conv2d(3, channels, 3, padding=1),
        nn.Tanh(),
        nn.Conv2d(channels, 8, 1, stride=2),
        nn.Tanh(),
        nn.Conv2d(8, 4, 1),
    )


def pixels_loss(logits: Tensor, targets: Tensor) -> tuple[Tensor, Tensor]:
    return nn.functional.cross_entropy(logits, targets, reduction="sum"), logits.new_tensor(targets.numel())


def moved(channels: int, precision: str, dtype: torch.dtype) -> Tensor:
    """How a training of eight steps changes the strided convolution's weights."""
    generator = torch.Generator().manual_seed(1)
    images = torch.randn(8, 4, 3, 128, 128, generator=generator, dtype=torch.float64).to(dtype)
    labels = torch.randint(0, 4, (8, 4, 64, 64), generator=generator)
    config = TrainConfig(
        epochs=1,
        optimizer="sgd",
        schedule="constant",
        learning_rate=0.5,
        weight_decay=0,
        clip_norm=0,
        average_decay=0,
        evaluate_every=0,
        precision=precision,  # type: ignore[arg-type]
    )
    network = narrow(channels).to(dtype)
    before = network[2].weight.detach().clone()
    with tempfile.TemporaryDirectory() as run:
        data = list(zip(images, labels, strict=True))
        list(fit(made_parts(network, lambda epoch: data, pixels_loss, 8), config, Run(Path(run), CPU)))
    return (network[2].weight.detach() - before).double()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("most", "precision"),
    [("AVX2", "fp32"), *(pytest.param("ALL", precision, marks=pytest.mark.long) for precision in ("fp32", "bf16"))],
)
def test_a_narrow_network_learns_what_it_learns_in_double_precision(most: str, precision: str) -> None:
    """In a process of its own: where the guard is missing it aborts, hangs or learns something else."""
    cap = {"ONEDNN_MAX_CPU_ISA": most} | ({"ATEN_CPU_CAPABILITY": "avx2"} if most == "AVX2" else {})
    environment = os.environ | cap | {"PYTHONPATH": f"{ROOT}{os.pathsep}{ROOT / 'tests'}"}
    command = [sys.executable, __file__, precision]
    done = subprocess.run(command, env=environment, cwd=ROOT, capture_output=True, text=True, timeout=PATIENCE_S)
    assert done.returncode == 0, done.stdout + done.stderr
    assert most == "ALL" or "trains fastest in fp32" in done.stdout


@pytest.mark.parametrize(
    ("convolution", "copies"),
    [
        (nn.Conv2d(4, 8, 1, stride=2), True),
        (nn.Conv2d(1, 8, 1, stride=(1, 2)), True),
        (nn.Conv2d(15, 8, 1, stride=3, padding="valid"), True),
        (nn.Conv2d(16, 8, 1, stride=2), False),
        (nn.Conv2d(4, 8, 1), False),
        (nn.Conv2d(4, 8, 3, stride=2), False),
        (nn.Conv2d(4, 8, 1, stride=2, groups=2), False),
        (nn.Conv2d(4, 8, 1, stride=2, padding=1), False),
    ],
)
def test_only_the_convolutions_that_meet_it_leave_channels_last(convolution: nn.Conv2d, copies: bool) -> None:
    use_channels_last(convolution, CPU)
    seen: list[Tensor] = []
    convolution.register_forward_pre_hook(lambda module, inputs: seen.append(inputs[0]))
    picture = torch.randn(2, convolution.in_channels, 6, 6).to(memory_format=torch.channels_last)
    convolution(picture)
    default = (convolution.in_channels * 36, 36, 6, 1)
    assert seen[0].stride() == (default if copies else picture.stride())
    assert torch.equal(seen[0], picture)


def test_every_other_weight_is_channels_last() -> None:
    network = narrow(4)
    use_channels_last(network, CPU)
    assert network[0].weight.stride() == (27, 1, 9, 3) and network[2].weight.stride() == (4, 1, 1, 1)


@pytest.mark.parametrize("held", ["avx2", "AVX512_CORE"])
def test_where_onednn_is_held_to_less_nothing_computes_in_bf16(held: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ONEDNN_MAX_CPU_ISA", held)
    assert training_precision(CPU) == resolve_precision("auto") == "fp32"


if __name__ == "__main__":
    torch.set_num_threads(2)
    print(f"trains fastest in {training_precision(CPU)}")
    for count in (2, 4, 7, 12):
        found, exact = (moved(count, sys.argv[1], dtype) for dtype in (torch.float32, torch.float64))
        error = float((found - exact).norm() / exact.norm())
        print(f"{count} channels: {error:.2g}", flush=True)
        assert error < (0.02 if sys.argv[1] == "bf16" else 1e-3)
