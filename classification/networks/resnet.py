"""ResNet, ResNeXt and WideResNet: residual blocks with the activation after the sum."""

from collections import OrderedDict

import torch.nn.functional as F
from torch import Tensor, nn

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
from steadyseg.classification.networks.layout import MODELS, RESIDUAL_BLOCKS
from steadyseg.classification.options import ClassifierOptions


class ResidualBlock(Block):
    """ReLU(shortcut + branch); MC dropout before the last convolution of the branch (arXiv 2105.12639).

    Basic: 3x3, 3x3. Bottleneck: 1x1, 3x3 with `inner` channels, `groups` and the stride, 1x1. BatchNorm after each. The
    shortcut is a 1x1 convolution and BatchNorm where the shape changes. In training each picture skips the branch with
    probability p = `skipped` (stochastic depth, arXiv 1603.09382). torchvision scales kept branches by 1 / (1 - p).
    """

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
        self.first = nn.Sequential()
        if inner:
            self._append(channels_in, inner, 1)
            self._append(inner, inner, 3, stride, groups)
        else:
            self._append(channels_in, channels_out, 3, stride)
        self.dropout = dropout(rate)
        kernel = 1 if inner else 3
        self.last = nn.Sequential(conv(inner or channels_out, channels_out, kernel), nn.BatchNorm2d(channels_out))
        self.skip_branch = skip_branch(skipped)
        self.shortcut: nn.Module = nn.Identity()
        if stride != 1 or channels_in != channels_out:
            self.shortcut = nn.Sequential(conv(channels_in, channels_out, 1, stride), nn.BatchNorm2d(channels_out))

    def _append(self, channels_in: int, channels_out: int, kernel: int, stride: int = 1, groups: int = 1) -> None:
        self.first.extend([conv(channels_in, channels_out, kernel, stride, groups), *norm_relu(channels_out)])

    def prefix(self, x: Tensor) -> tuple[Tensor, Tensor]:
        return self.first(x), self.shortcut(x)

    def suffix(self, shared: tuple[Tensor, Tensor]) -> Tensor:
        x, shortcut = shared
        return F.relu(shortcut + self.skip_branch(self.last(self.dropout(x))))


def resnet(options: ClassifierOptions, num_classes: int) -> Chain:
    """(B, 3, h, w) -> (B, K): stem, four stages of width 1, 2, 4, 8 times `width`, head."""
    family, depth = MODELS[options.network]
    blocks = RESIDUAL_BLOCKS[depth]
    skipped = iter(skip_rates(options.stochastic_depth, sum(blocks)))
    chain = Chain(OrderedDict(stem=stem(options.channels, options.stem, activated=True)))
    channels = options.channels
    for i, count in enumerate(blocks):
        width = options.channels * 2**i
        inner, groups = _inner(family, depth, width)
        modules = []
        for j in range(count):
            stride = 2 if i > 0 and j == 0 else 1
            out = 4 * width if inner else width
            modules.append(ResidualBlock(channels, out, stride, options.dropout, next(skipped), inner, groups))
            channels = out
        chain.add_module(f"stage{i + 1}", stage(modules, i + 1, options, channels))
    chain.add_module("head", head(options.head or "gap", channels, num_classes, 64 * options.channels, HEAD_SIDE))
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
