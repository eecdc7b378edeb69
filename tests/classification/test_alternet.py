"""AlterNet: where its attention blocks are, what one computes, and the rule that builds it up."""

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from steadyseg.classification.networks.attention import WindowAttention
from steadyseg.classification.networks.build import build_classifier
from steadyseg.classification.networks.residual import AttentionBlock, PreActBlock
from steadyseg.classification.options import ClassifierOptions

PATTERNS = {
    (18, False): "cc ca ca ca",
    (18, True): "cc ca ca ca",
    (34, False): "ccc ccca ccccca caca",
    (50, False): "ccc ccca ccccca caca",
    (50, True): "ccc ccca cacaca caca",
    (101, True): f"ccc ccca {'c' * 17}cacaca caca",
    (152, False): f"ccc {'c' * 7}a {'c' * 35}a caca",
}
"""Convolution (c) and attention (a) blocks of the four stages by depth and stem (True: ImageNet's layout)."""


def built(depth: int, **options: object) -> nn.Module:
    with torch.device("meta"):
        return build_classifier(ClassifierOptions(f"alternet{depth}", **options), 10)  # type: ignore[arg-type]


def pattern(network: nn.Module) -> str:
    letters = {PreActBlock: "c", AttentionBlock: "a"}
    stages = [module for name, module in network.named_children() if name.startswith("stage")]
    return " ".join("".join(letters[type(block)] for block in stage) for stage in stages)


@pytest.mark.parametrize(("depth", "stem"), PATTERNS)
def test_every_stage_ends_in_pairs_of_convolution_and_attention(depth: int, stem: bool) -> None:
    network = built(depth, stem=stem)
    assert pattern(network) == PATTERNS[depth, stem]
    layers = {name: m for name, m in network.named_modules() if isinstance(m, WindowAttention)}
    for name, layer in layers.items():
        assert layer.window == (7 if stem else 4)
        assert layer.heads == {"stage2": 6, "stage3": 12, "stage4": 24}[name.split(".")[0]]


def test_the_layout_and_the_attention_window_are_options() -> None:
    network = built(50, attention=(1, 2, 0, 0), attention_window=5)
    assert pattern(network) == "cca caca cccccc cccc"
    assert {m.window for m in network.modules() if isinstance(m, WindowAttention)} == {5}
    assert pattern(built(50, attention=(0, 0, 0, 0))) == "ccc cccc cccccc cccc"


@pytest.mark.parametrize("depth", [18, 50])
def test_attention_blocks_have_the_published_widths(depth: int) -> None:
    """1x1 to a quarter (bottlenecks) or as many, heads of 64, and back to the stage's channels."""
    for name, block in built(depth).named_modules():
        if isinstance(block, AttentionBlock):
            width = 64 * 2 ** (int(name[5]) - 1)
            channels = width * (4 if depth == 50 else 1)
            layer = block.branch[4]
            assert isinstance(layer, WindowAttention)
            assert block.branch[2].weight.shape == (width, channels, 1, 1) and block.branch[2].bias is None
            assert layer.to_qkv.weight.shape == (3 * layer.heads * 64, width, 1, 1) and layer.to_qkv.bias is None
            assert layer.to_out.weight.shape == (channels, layer.heads * 64, 1, 1)


def test_an_attention_block_is_a_residual_branch() -> None:
    torch.manual_seed(0)
    block, x = AttentionBlock(8, 2, 3, 4, 4, 0.0).double().eval(), torch.randn(2, 8, 5, 6, dtype=torch.float64)
    first, _, reduce, second, attention = block.branch
    with torch.no_grad():
        inner = F.conv2d(F.gelu(first(x)), reduce.weight)
        torch.testing.assert_close(block(x), x + attention(second(inner)), rtol=0, atol=1e-12)
