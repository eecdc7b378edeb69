"""AlterNet: a pre-activation ResNet whose stages end in attention blocks (arXiv 2202.06709, Sec. 4)."""

from collections import OrderedDict

from torch import Tensor, nn
from torchvision.ops import StochasticDepth

from classification.networks.attention import WindowAttention
from classification.networks.chain import Chain, conv, skip_rates, stage, stem
from classification.networks.heads import pooled_head
from classification.networks.layout import ALTERNET_BLOCKS, MODELS, attention_layout
from classification.networks.preresnet import preact_block, stage_channels
from classification.options import ClassifierOptions

HEADS = (3, 6, 12, 24)
"""Attention heads of each stage; each has `width` channels (published: 64)."""


class AttentionBlock(nn.Module):
    """x + branch: BatchNorm, GELU, 1x1 convolution to the stage's inner channels, BatchNorm, window attention; no MLP.

    The inner channels are a quarter of x's where the network has bottlenecks, else as many. The convolution blocks
    between two of these take the place of the MLP. They have the MC dropout; this block has none.
    """

    def __init__(self, channels: int, inner: int, heads: int, head_width: int, window: int, skipped: float) -> None:
        super().__init__()
        self.branch = nn.Sequential(
            nn.BatchNorm2d(channels),
            nn.GELU(),
            conv(channels, inner, 1),
            nn.BatchNorm2d(inner),
            WindowAttention(inner, channels, heads, head_width, window),
        )
        self.skip_branch = StochasticDepth(skipped, "row") if skipped else nn.Identity()

    def forward(self, x: Tensor) -> Tensor:
        return x + self.skip_branch(self.branch(x))


def alternet(options: ClassifierOptions, num_classes: int) -> Chain:
    """(B, 3, h, w) -> (B, K), any h, w: bare stem, four stages, BN-ReLU-GAP head.

    A stage of B blocks, M of them attention blocks, has (B - 2 M) convolution blocks and then M pairs of a convolution
    and an attention block. It therefore ends in attention if M > 0, and a convolution block halves the map.
    """
    _, depth = MODELS[options.network]
    blocks = ALTERNET_BLOCKS[depth]
    attention, window = attention_layout(options)
    skipped = iter(skip_rates(options.stochastic_depth, sum(blocks)))
    chain = Chain(OrderedDict(stem=stem(options.channels, options.stem, activated=False)))
    channels = options.channels
    for i, (count, pairs) in enumerate(zip(blocks, attention, strict=True)):
        modules: list[nn.Module] = []
        for j in range(count):
            if (count - 1 - j) % 2 == 0 and j >= count - 2 * pairs:
                inner = options.channels * 2**i
                modules.append(AttentionBlock(channels, inner, HEADS[i], options.channels, window, next(skipped)))
            else:
                modules.append(preact_block(channels, i, j, depth, options, next(skipped)))
            channels = stage_channels(i, depth, options)
        chain.add_module(f"stage{i + 1}", stage(modules, i + 1, options, channels))
    chain.add_module("head", pooled_head("bn-gap", channels, num_classes))
    return chain
