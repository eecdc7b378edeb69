"""Pre-activation ResNet, and AlterNet, whose stages end in attention blocks (arXiv 2202.06709, Sec. 4)."""

from collections import OrderedDict

from torch import Tensor, nn

from steadyseg.classification.networks.attention import WindowAttention
from steadyseg.classification.networks.chain import (
    Block,
    Chain,
    conv,
    dropout,
    norm_relu,
    skip_branch,
    skip_rates,
    stage,
    stem,
)
from steadyseg.classification.networks.heads import pooled_head
from steadyseg.classification.networks.layout import ALTERNET_BLOCKS, MODELS, RESIDUAL_BLOCKS, attention_layout
from steadyseg.classification.options import ClassifierOptions

HEADS = (3, 6, 12, 24)
"""Attention heads of each stage of an AlterNet; each has `channels` channels (published: 64)."""


class PreActBlock(Block):
    """shortcut + branch (He et al. 2016, arXiv 1603.05027); basic (3x3, 3x3) or bottleneck (1x1, 3x3, 1x1).

    If the shape changes, the first BatchNorm and ReLU feed both the branch and the shortcut's 1x1 convolution. This
    convolution has no BatchNorm, so that the same weights fit the network with and without dropout. Else the shortcut
    is the block's input.

    MC dropout sits between the last ReLU and the last convolution. Later published code has it before the BatchNorm
    instead. Here that BatchNorm never sees a mask, so its running variance also fits without dropout (arXiv 1801.05134
    describes this variance shift).
    """

    def __init__(
        self, channels_in: int, channels_out: int, stride: int, rate: float, skipped: float, inner: int = 0
    ) -> None:
        super().__init__()
        self.activate = nn.Sequential(*norm_relu(channels_in))
        middle = inner or channels_out
        self.first = nn.Sequential()
        if inner:
            self.first.extend([conv(channels_in, inner, 1), *norm_relu(inner), conv(inner, inner, 3, stride)])
        else:
            self.first.append(conv(channels_in, channels_out, 3, stride))
        self.first.extend(norm_relu(middle))
        self.dropout = dropout(rate)
        self.last = conv(middle, channels_out, 1 if inner else 3)
        self.skip_branch = skip_branch(skipped)
        self.shortcut: nn.Module | None = None
        if stride != 1 or channels_in != channels_out:
            self.shortcut = conv(channels_in, channels_out, 1, stride)

    def prefix(self, x: Tensor) -> tuple[Tensor, Tensor]:
        activated = self.activate(x)
        return self.first(activated), x if self.shortcut is None else self.shortcut(activated)

    def suffix(self, shared: tuple[Tensor, Tensor]) -> Tensor:
        x, shortcut = shared
        return shortcut + self.skip_branch(self.last(self.dropout(x)))


class AttentionBlock(nn.Module):
    """x + branch: BatchNorm, GELU, 1x1 convolution to the stage's inner channels, BatchNorm, window attention; no MLP.

    The inner channels are a quarter of x's channels in a network with bottlenecks, else equally many. The convolution
    blocks between two attention blocks take the place of the MLP and have the MC dropout.
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
        self.skip_branch = skip_branch(skipped)

    def forward(self, x: Tensor) -> Tensor:
        return x + self.skip_branch(self.branch(x))


def preresnet(options: ClassifierOptions, num_classes: int) -> Chain:
    """(B, 3, h, w) -> (B, K), any h, w: bare stem, four stages of channels 1, 2, 4, 8 times `channels`, BN-ReLU-GAP.

    A stage of B blocks with M attention blocks (AlterNet) has B - 2 M convolution blocks, then M pairs of convolution
    and attention block. It therefore ends in attention if M > 0, and a convolution block halves the map.
    """
    family, depth = MODELS[options.network]
    blocks = (ALTERNET_BLOCKS if family == "alternet" else RESIDUAL_BLOCKS)[depth]
    attention, window = attention_layout(options) if family == "alternet" else ((0, 0, 0, 0), 0)
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


def preact_block(
    channels_in: int, stage_index: int, index: int, depth: int, options: ClassifierOptions, skipped: float
) -> PreActBlock:
    """Returns block `index` of a stage, both from 0; the first block of every stage but the first halves the map."""
    stride = 2 if stage_index > 0 and index == 0 else 1
    inner = options.channels * 2**stage_index if depth >= 50 else 0
    channels_out = stage_channels(stage_index, depth, options)
    return PreActBlock(channels_in, channels_out, stride, options.dropout, skipped, inner)


def stage_channels(stage_index: int, depth: int, options: ClassifierOptions) -> int:
    """Returns the output channels of a stage (from 0): 4 times the inner channels in bottlenecks."""
    return options.channels * 2**stage_index * (4 if depth >= 50 else 1)
