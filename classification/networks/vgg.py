"""VGG with BatchNorm, and its pre-activation form."""

from torch import Tensor, nn

from classification.networks.chain import Block, Chain, MaxPool, conv, dropout, norm_relu, stage
from classification.networks.heads import head
from classification.networks.layout import FAMILIES, MODELS, VGG_CONVS
from classification.options import ClassifierOptions

MULTIPLES = (1, 2, 4, 8, 8)
"""Channels of the stages as multiples of `width`: 64, 128, 256, 512, 512."""
HEAD_SIDE = 7
"""Side of the MLP head's average pooling: that of the last map of a 224 x 224 picture."""


class ConvBlock(Block):
    """3x3 convolution without bias, BatchNorm, ReLU, MC dropout; or BatchNorm, ReLU, convolution, MC dropout."""

    def __init__(self, channels_in: int, channels_out: int, rate: float, preactivated: bool) -> None:
        super().__init__()
        layer = conv(channels_in, channels_out, 3)
        if preactivated:
            self.first = nn.Sequential(*norm_relu(channels_in), layer)
        else:
            self.first = nn.Sequential(layer, *norm_relu(channels_out))
        self.dropout = dropout(rate)

    def prefix(self, x: Tensor) -> Tensor:
        return self.first(x)

    def suffix(self, shared: Tensor) -> Tensor:
        return self.dropout(shared)


def vgg(options: ClassifierOptions, num_classes: int) -> Chain:
    """(B, 3, h, w) -> (B, K), h, w >= 16, with the MLP head 32 (less where smoothing grows the maps).

    Five stages; 2x2 max pooling begins the last four. In the pre-activation form the picture itself passes BatchNorm
    and ReLU first, and the head's input is the output of a convolution, as published.
    """
    family, depth = MODELS[options.network]
    chain, channels = Chain(), 3
    for i, (count, multiple) in enumerate(zip(VGG_CONVS[depth], MULTIPLES, strict=True)):
        modules: list[nn.Module] = [MaxPool(2)] if i > 0 else []
        for _ in range(count):
            modules.append(ConvBlock(channels, multiple * options.channels, options.dropout, family == "prevgg"))
            channels = multiple * options.channels
        chain.add_module(f"stage{i + 1}", stage(modules, i + 1, options, channels))
    name = options.head or FAMILIES[family].heads[0]
    chain.add_module("head", head(name, channels, num_classes, 64 * options.channels, HEAD_SIDE, pool=2))
    return chain
