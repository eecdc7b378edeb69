"""Pre-activation ResNet: BatchNorm and ReLU before each convolution, nothing after the sum."""

from collections import OrderedDict

from torch import Tensor, nn
from torchvision.ops import StochasticDepth

from classification.networks.chain import Block, Chain, conv, dropout, norm_relu, skip_rates, stage, stem
from classification.networks.heads import pooled_head
from classification.networks.layout import MODELS, RESIDUAL_BLOCKS
from classification.options import ClassifierOptions


class PreActBlock(Block):
    """shortcut + branch (He et al. 2016, arXiv 1603.05027); basic (3x3, 3x3) or bottleneck (1x1, 3x3, 1x1).

    Where the shape changes, the first BatchNorm and ReLU feed both the branch and the shortcut's 1x1 convolution, which
    has no BatchNorm, so that the same weights fit the network with and without dropout. Else the shortcut is the
    block's input.

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
        self.skip_branch = StochasticDepth(skipped, "row") if skipped else nn.Identity()
        self.shortcut: nn.Module | None = None
        if stride != 1 or channels_in != channels_out:
            self.shortcut = conv(channels_in, channels_out, 1, stride)

    def prefix(self, x: Tensor) -> tuple[Tensor, Tensor]:
        activated = self.activate(x)
        return self.first(activated), x if self.shortcut is None else self.shortcut(activated)

    def suffix(self, shared: tuple[Tensor, Tensor]) -> Tensor:
        x, shortcut = shared
        return shortcut + self.skip_branch(self.last(self.dropout(x)))


def preresnet(options: ClassifierOptions, num_classes: int) -> Chain:
    """(B, 3, h, w) -> (B, K): bare stem, four stages of width 1, 2, 4, 8 times `width`, BN-ReLU-GAP head."""
    _, depth = MODELS[options.network]
    blocks = RESIDUAL_BLOCKS[depth]
    skipped = iter(skip_rates(options.stochastic_depth, sum(blocks)))
    chain = Chain(OrderedDict(stem=stem(options.channels, options.stem, activated=False)))
    channels = options.channels
    for i, count in enumerate(blocks):
        modules = []
        for j in range(count):
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
    """Returns the output channels of a stage (from 0): 4 times the inner ones where the blocks are bottlenecks."""
    return options.channels * 2**stage_index * (4 if depth >= 50 else 1)
