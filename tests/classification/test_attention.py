"""Window attention against masked attention written as loops over points; where AlterNet has it, and as what."""

import math

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from steadyseg.classification.networks.attention import WindowAttention
from steadyseg.classification.networks.build import build_classifier
from steadyseg.classification.networks.residual import AttentionBlock, PreActBlock
from steadyseg.classification.options import ClassifierOptions

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
