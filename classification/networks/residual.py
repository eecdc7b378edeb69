"""ResNet, ResNeXt, WideResNet, pre-activation ResNet, and AlterNet, whose stages end in attention blocks.

AlterNet: arXiv 2202.06709, Sec. 4.
"""

from collections import OrderedDict

import torch.nn.functional as F
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
from steadyseg.classification.networks.heads import HEAD_SIDE, head
from steadyseg.classification.networks.layout import ALTERNET_BLOCKS, MODELS, RESIDUAL_BLOCKS, attention_layout
from steadyseg.classification.options import ClassifierOptions

HEADS = (3, 6, 12, 24)
"""Attention heads of each stage of an AlterNet; each has `channels` channels (published: 64)."""


class ResidualBlock(Block):
    """ReLU(shortcut + branch); MC dropout before the last convolution of the branch (arXiv 2105.12639).

    Basic: 3x3, 3x3. Bottleneck: 1x1, 3x3 with `inner` channels, `groups` and the stride, 1x1. BatchNorm after each. The
    shortcut is a 1x1 convolution and BatchNorm where the shape changes. In training each picture skips the branch with
    probability p = `skipped` (stochastic depth, arXiv 1603.09382). torchvision scales kept branches by 1 / (1 - p).
    """

    preactivated = False

    def __init__(
        self,
        channels_in: int,
        channels_out: int,
        stride: int,
        rate: float,
        skipped: float,
        inner: int = 0,
        groups: int = 1,
    ) -> None:
        super().__init__()
        if self.preactivated:
            self.activate = nn.Sequential(*norm_relu(channels_in))
        middle = inner or channels_out
        self.first = nn.Sequential()
        if inner:
            self.first.extend([conv(channels_in, inner, 1), *norm_relu(inner), conv(inner, inner, 3, stride, groups)])
        else:
            self.first.append(conv(channels_in, channels_out, 3, stride))
        self.first.extend(norm_relu(middle))
        self.dropout = dropout(rate)
        self.last = self._normalised(conv(middle, channels_out, 1 if inner else 3))
        self.skip_branch = skip_branch(skipped)
        self.shortcut: nn.Module | None = None
        if stride != 1 or channels_in != channels_out:
            self.shortcut = self._normalised(conv(channels_in, channels_out, 1, stride))

    def _normalised(self, layer: nn.Conv2d) -> nn.Module:
        return layer if self.preactivated else nn.Sequential(layer, nn.BatchNorm2d(layer.out_channels))

    def prefix(self, x: Tensor) -> tuple[Tensor, Tensor]:
        activated = self.activate(x) if self.preactivated else x
        return self.first(activated), x if self.shortcut is None else self.shortcut(activated)

    def suffix(self, shared: tuple[Tensor, Tensor]) -> Tensor:
        x, shortcut = shared
        found = shortcut + self.skip_branch(self.last(self.dropout(x)))
        return found if self.preactivated else F.relu(found)


class PreActBlock(ResidualBlock):
    """shortcut + branch, with BatchNorm and ReLU before each convolution (He et al. 2016, arXiv 1603.05027).

    If the shape changes, the first BatchNorm and ReLU feed both the branch and the shortcut's 1x1 convolution. This
    convolution has no BatchNorm, so that the same weights fit the network with and without dropout. Else the shortcut
    is the block's input.

    MC dropout sits between the last ReLU and the last convolution. Later published code has it before the BatchNorm
    instead. Here that BatchNorm never sees a mask, so its running variance also fits without dropout (arXiv 1801.05134
    describes this variance shift).
    """

    preactivated = True


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


def residual(options: ClassifierOptions, num_classes: int) -> Chain:
    """(B, 3, h, w) -> (B, K), any h, w: stem, four stages of channels 1, 2, 4, 8 times `channels`, head.

    The channels of a stage of bottlenecks are four times as many. A pre-activation network has a bare stem and the head
    BN-ReLU-GAP. A stage of B blocks with M attention blocks (AlterNet) has B - 2 M convolution blocks, then M pairs of
    convolution and attention block. It therefore ends in attention if M > 0, and a convolution block halves the map.
    """
    family, depth = MODELS[options.network]
    preactivated = family in ("preresnet", "alternet")
    blocks = (ALTERNET_BLOCKS if family == "alternet" else RESIDUAL_BLOCKS)[depth]
    attention, window = attention_layout(options) if family == "alternet" else ((0, 0, 0, 0), 0)
    skipped = iter(skip_rates(options.stochastic_depth, sum(blocks)))
    chain = Chain(OrderedDict(stem=stem(options.channels, options.stem, activated=not preactivated)))
    channels = options.channels
    for i, (count, pairs) in enumerate(zip(blocks, attention, strict=True)):
        width = options.channels * 2**i
        inner, groups = _inner(family, depth, width)
        modules: list[nn.Module] = []
        for j in range(count):
            if (count - 1 - j) % 2 == 0 and j >= count - 2 * pairs:
                modules.append(AttentionBlock(channels, width, HEADS[i], options.channels, window, next(skipped)))
            else:
                kind, stride = PreActBlock if preactivated else ResidualBlock, 2 if i > 0 and j == 0 else 1
                out = 4 * width if inner else width
                modules.append(kind(channels, out, stride, options.dropout, next(skipped), inner, groups))
                channels = out
        chain.add_module(f"stage{i + 1}", stage(modules, i + 1, options, channels))
    name = options.head or ("bn-gap" if preactivated else "gap")
    chain.add_module("head", head(name, channels, num_classes, 64 * options.channels, HEAD_SIDE))
    return chain


def _inner(family: str, depth: int, width: int) -> tuple[int, int]:
    """Returns channels and groups of the bottlenecks' 3x3 convolutions in a stage; 0 channels: basic blocks.

    ResNeXt: 32 groups of width 4 (depth 50) or 8 (101) where the stage has 64 (arXiv 1611.05431, Table 1); WideResNet:
    twice the bottleneck's width (arXiv 1605.07146, Sec. 3.4).
    """
    if depth < 50:
        return 0, 1
    if family == "resnext":
        return width * (2 if depth == 50 else 4), 32
    return width * (2 if family == "wideresnet" else 1), 1
