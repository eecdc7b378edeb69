"""Classifier heads and window attention against their definitions, and what a graph file computes."""

import math
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F
from made.classifier import save_classifier
from torch import Tensor, nn

from steadyseg.classification.exported import ExportedClassifier
from steadyseg.classification.networks.attention import WindowAttention
from steadyseg.classification.networks.build import build_classifier
from steadyseg.classification.networks.heads import GlobalMedian, head, mlp_head
from steadyseg.classification.networks.layout import HEADS
from steadyseg.classification.networks.residual import AttentionBlock, PreActBlock
from steadyseg.classification.options import ClassifierOptions
from steadyseg.classification.pretrained import read_classifier
from steadyseg.core.dropout import draw_mask, set_dropout_active


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
def test_networks_have_the_published_heads(model, options, shapes):
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


SIZES = [(8, 8), (9, 7), (5, 12), (3, 3), (1, 1)]
"""Multiples of the windows below, and not, and smaller."""


def naive(layer: WindowAttention, x: Tensor) -> Tensor:
    """Point by point: who is in my window, how much is each of them worth, what is their mean value."""
    window, heads = layer.window, layer.heads
    batch, _, height, width = x.shape
    up, left = (layer.shift if side > window else 0 for side in (height, width))
    qkv = torch.einsum("oc,bcyx->boyx", layer.to_qkv.weight[:, :, 0, 0], x)
    d = qkv.shape[1] // (3 * heads)
    q, k, v = qkv.reshape(batch, 3, heads, d, height, width).unbind(1)
    table = layer.position_bias.reshape(2 * window - 1, 2 * window - 1)
    mixed = torch.zeros(batch, heads, d, height, width, dtype=x.dtype)
    points = [(i, j) for i in range(height) for j in range(width)]
    for y, x_ in points:
        corner = (y + up) // window, (x_ + left) // window
        around = [(i, j) for i, j in points if ((i + up) // window, (j + left) // window) == corner]
        rows, columns = (torch.tensor(places) for places in zip(*around, strict=True))
        scores = torch.einsum("bhd,bhdn->bhn", q[..., y, x_], k[..., rows, columns]) / math.sqrt(d)
        weights = (scores + table[rows - y + window - 1, columns - x_ + window - 1]).exp()
        weights = weights / weights.sum(-1, keepdim=True)
        mixed[..., y, x_] = torch.einsum("bhn,bhdn->bhd", weights, v[..., rows, columns])
    out = torch.einsum("oc,bcyx->boyx", layer.to_out.weight[:, :, 0, 0], mixed.flatten(1, 2))
    return out + layer.to_out.bias[:, None, None]


@torch.no_grad()
@pytest.mark.parametrize("size", SIZES, ids=str)
@pytest.mark.parametrize(("window", "shift"), [(4, 0), (3, 0), (1, 0), (4, 2), (3, 1)])
def test_it_is_attention_among_the_points_of_a_window(window: int, shift: int, size: tuple[int, int]) -> None:
    torch.manual_seed(0)
    layer = WindowAttention(5, 6, 2, 3, window, shift).double()
    nn.init.normal_(layer.position_bias)
    assert layer.position_bias.ndim == 1, "it counts as a bias, which the optimiser does not decay"
    x = torch.randn(2, 5, *size, dtype=torch.float64)
    torch.testing.assert_close(layer(x), naive(layer, x), rtol=0, atol=1e-12)
    found = layer(x.to(memory_format=torch.channels_last))
    torch.testing.assert_close(found, layer(x), rtol=0, atol=1e-12)


PATTERNS: dict[tuple[int, bool], str] = {
    (18, False): "cc ca ca ca",
    (34, False): "ccc ccca ccccca caca",
    (50, True): "ccc ccca cacaca caca",
    (101, True): f"ccc ccca {'c' * 17}cacaca caca",
    (152, False): f"ccc {'c' * 7}a {'c' * 35}a caca",
}
"""Convolution (c) and attention (a) blocks of AlterNet's four stages by depth and stem (True: ImageNet's layout)."""


def alternet(depth: int, **options: object) -> nn.Module:
    with torch.device("meta"):
        return build_classifier(ClassifierOptions(f"alternet{depth}", **options), 10)  # type: ignore[arg-type]


def pattern(network: nn.Module) -> str:
    letters = {PreActBlock: "c", AttentionBlock: "a"}
    stages = [module for name, module in network.named_children() if name.startswith("stage")]
    return " ".join("".join(letters[type(block)] for block in stage) for stage in stages)


@pytest.mark.parametrize(("depth", "stem"), PATTERNS)
def test_alternets_stages_end_in_pairs_of_the_published_widths(depth: int, stem: bool) -> None:
    """Attention: 1x1 to a quarter (bottlenecks) or as many channels, heads of 64, and back to the stage's channels."""
    network = alternet(depth, stem=stem)
    assert pattern(network) == PATTERNS[depth, stem]
    for name, block in network.named_modules():
        if isinstance(block, AttentionBlock):
            stage, reduce, layer = int(name[5]), block.branch[2], block.branch[4]
            width, heads = 64 * 2 ** (stage - 1), {2: 6, 3: 12, 4: 24}[stage]
            channels = width * (4 if depth >= 50 else 1)
            assert isinstance(layer, WindowAttention) and (layer.window, layer.heads) == (7 if stem else 4, heads)
            assert reduce.weight.shape == (width, channels, 1, 1) and reduce.bias is None
            assert layer.to_qkv.weight.shape == (3 * heads * 64, width, 1, 1) and layer.to_qkv.bias is None
            assert layer.to_out.weight.shape == (channels, heads * 64, 1, 1)


def test_the_layout_and_the_attention_window_are_options() -> None:
    network = alternet(50, attention=(1, 2, 0, 0), attention_window=5)
    assert pattern(network) == "cca caca cccccc cccc"
    assert {m.window for m in network.modules() if isinstance(m, WindowAttention)} == {5}


@torch.no_grad()
def test_an_attention_block_is_a_residual_branch() -> None:
    torch.manual_seed(0)
    block, x = AttentionBlock(8, 2, 3, 4, 4, 0.0).double().eval(), torch.randn(2, 8, 5, 6, dtype=torch.float64)
    first, _, reduce, second, attention = block.branch
    inner = F.conv2d(F.gelu(first(x)), reduce.weight)
    torch.testing.assert_close(block(x), x + attention(second(inner)), rtol=0, atol=1e-12)


NETWORKS = {
    "ours": ClassifierOptions(channels=4, dropout=0.3, smoothing=True),
    "vgg": ClassifierOptions(network="vgg11", channels=2, dropout=0.2),
    "tokens": ClassifierOptions(network="timm:vit_tiny_patch16_224", dropout=0.2, img_size=32, patch_size=16),
}


@torch.no_grad()
@pytest.mark.parametrize("name", NETWORKS)
def test_passes_as_a_batch_are_passes_one_by_one(name: str, tmp_path: Path) -> None:
    model = read_classifier(save_classifier(tmp_path / "c.safetensors", NETWORKS[name]))
    step = ExportedClassifier(model.network(), model.meta.mean, model.meta.std, 3, 1.5)
    image, shapes = step.example(32), step.trace_masks(32)
    torch.manual_seed(0)
    masks = [draw_mask(torch.ones(2, *shape), call.rate) for shape, call in zip(shapes, step.calls, strict=True)]
    found = step(image, *masks)
    for one, other in zip(found, step.pass_by_pass(image, masks).values(), strict=False):
        torch.testing.assert_close(one, other, atol=1e-5, rtol=0)
    assert found[3].shape == (2, 3, 6) and found[2].max() > 1e-4 and len(masks) > 3
    drawn = step(image[:1].expand(3, -1, -1, -1))[3].flatten(0, 1)  # without masks every picture and pass draws its own
    assert len(drawn.unique(dim=0)) == 9
    set_dropout_active(step.network, False)
    assert step.trace_masks(32) == [] and step(image)[2].abs().max() < 1e-6
