"""Classifier heads against their definitions."""

import pytest
import torch
from torch import Tensor, nn

from steadyseg.classification.networks.build import build_classifier
from steadyseg.classification.networks.heads import GlobalMedian, head, mlp_head
from steadyseg.classification.networks.layout import HEADS
from steadyseg.classification.options import ClassifierOptions


def maps(height: int, width: int, channels: int = 4) -> Tensor:
    return torch.randn(3, channels, height, width, generator=torch.Generator().manual_seed(height * 10 + width))


def test_the_median_is_the_value_in_the_upper_middle() -> None:
    for height, width, rank in ((1, 2, 1), (2, 2, 2), (1, 3, 1), (3, 3, 4), (4, 4, 8), (5, 6, 15)):
        x = maps(height, width)
        expected = x.flatten(2).sort(-1, descending=True).values[..., rank - 1]
        torch.testing.assert_close(GlobalMedian()(x), expected, rtol=0, atol=0)


@torch.no_grad()
def test_pooled_heads_are_linear_in_one_number_per_channel() -> None:
    x = maps(5, 3)
    mean, deviation = x.mean((0, 2, 3), keepdim=True), (x.var((0, 2, 3), unbiased=False, keepdim=True) + 1e-5).sqrt()
    for name, features in {
        "gap": x.mean((2, 3)),
        "gmaxp": x.amax((2, 3)),
        "gmedp": GlobalMedian()(x),
        "gap-clip": 2 / (1 + (-x.mean((2, 3)) / 2).exp()) - 1,
        "bn-gap": ((x - mean) / deviation).relu().mean((2, 3)),
    }.items():
        built = head(name, 4, 7).train()  # type: ignore[arg-type]
        last = list(built.modules())[-1]
        assert isinstance(last, nn.Linear)
        torch.testing.assert_close(built(x), features @ last.weight.T + last.bias)


@torch.no_grad()
def test_the_mlp_head_pools_as_published_and_drops_in_training_only() -> None:
    x, built = maps(4, 4), mlp_head(4, 7, hidden=6, side=2, pool=2).eval()
    pooled = x.unfold(2, 2, 2).unfold(3, 2, 2).amax((-2, -1)).flatten(1)
    first, second, last = (m for m in built.modules() if isinstance(m, nn.Linear))
    torch.testing.assert_close(built(x), last(second(first(pooled).relu()).relu()))
    built.train()
    assert not torch.equal(built(x), built(x))
    assert [m.p for m in built.modules() if isinstance(m, nn.Dropout)] == [0.5, 0.5]
    wide = mlp_head(4, 7, hidden=6, side=7).eval()  # a smaller map is enlarged
    torch.testing.assert_close(wide(maps(1, 1)), wide(maps(1, 1).expand(3, 4, 7, 7)))


@pytest.mark.parametrize(
    ("model", "options", "shapes"),
    [
        ("vgg16", {}, [(4096, 512 * 49), (4096, 4096), (10, 4096)]),
        ("prevgg11", {}, [(4096, 512 * 49), (4096, 4096), (10, 4096)]),
        ("alexnet", {}, [(4096, 256 * 4), (4096, 4096), (10, 4096)]),
        ("alexnet", {"stem": True}, [(4096, 256 * 36), (4096, 4096), (10, 4096)]),
        ("resnet50", {"head": "mlp"}, [(4096, 2048 * 49), (4096, 4096), (10, 4096)]),
        ("resnet18", {"head": "gap-mlp"}, [(4096, 512), (4096, 4096), (10, 4096)]),
        ("vgg16", {"channels": 8}, [(512, 64 * 49), (512, 512), (10, 512)]),
        ("vgg16", {"head": "gap"}, [(10, 512)]),
        ("resnet50", {}, [(10, 2048)]),
        ("preresnet50", {}, [(10, 2048)]),
        ("alternet18", {}, [(10, 512)]),
    ],
    ids=str,
)
def test_networks_have_the_published_heads(
    model: str, options: dict[str, object], shapes: list[tuple[int, int]]
) -> None:
    with torch.device("meta"):
        network = build_classifier(ClassifierOptions(model, **options), 10)  # type: ignore[arg-type]
    assert [tuple(m.weight.shape) for m in network.modules() if isinstance(m, nn.Linear)] == shapes


@pytest.mark.parametrize("name", [*HEADS, "bn-gap"])
def test_every_head_of_a_family_trains(name: str) -> None:
    for model in ("prevgg11",) if name == "bn-gap" else ("alexnet", "vgg11", "prevgg11", "resnet18"):
        options = {"network": model, "head": name, "channels": 4, "smoothing": True, "dropout": 0.2}
        network = build_classifier(options, 3)
        network(torch.randn(4, 3, 32, 32)).square().sum().backward()
        assert all(p.grad is not None and p.grad.isfinite().all() for p in network.parameters()), model
