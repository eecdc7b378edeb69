"""Networks without skips: VGG with BatchNorm or pre-activated, and AlexNet, to which corruption errors are relative."""

from torch import Tensor, nn

from steadyseg.classification.networks.chain import Block, Chain, MaxPool, conv, dropout, norm_relu, require_side, stage
from steadyseg.classification.networks.heads import HEAD_SIDE, head
from steadyseg.classification.networks.layout import FAMILIES, MODELS, VGG_CONVS
from steadyseg.classification.options import ClassifierOptions

MULTIPLES = (1, 2, 4, 8, 8)
"""Channels of VGG's stages as multiples of `channels`: 64, 128, 256, 512, 512."""


class ConvBlock(Block):
    """Convolution without bias (as in all published networks), ReLU, MC dropout."""

    def __init__(
        self, channels_in: int, channels_out: int, kernel: int, rate: float, stride: int = 1, padding: int | None = None
    ) -> None:
        super().__init__()
        padding = kernel // 2 if padding is None else padding
        self.min_side = kernel - 2 * padding
        self.conv = nn.Conv2d(channels_in, channels_out, kernel, stride, padding, bias=False)
        self.dropout = dropout(rate)

    def prefix(self, x: Tensor) -> Tensor:
        require_side(x, self.min_side)
        return self.conv(x).relu_()


def alexnet(options: ClassifierOptions, num_classes: int) -> Chain:
    """(B, 3, h, w) -> (B, K); Krizhevsky 2014, arXiv 1404.5997, with channels as multiples of `width`.

    Max pooling begins the last two of the three stages. With the stem (h, w >= 63): first convolution 11x11 stride 4,
    pooling kernel 3, MLP head over 6 x 6 points. Without the stem (CIFAR): 3x3 stride 2, kernel 2, 2 x 2 points.
    """
    width, rate, kernel = options.channels, options.dropout, 3 if options.stem else 2
    first = ConvBlock(3, width, 11, rate, 4, 2) if options.stem else ConvBlock(3, width, 3, rate, 2)
    chain = Chain()
    chain.add_module("stage1", stage([first], 1, options, width))
    chain.add_module("stage2", stage([MaxPool(kernel), ConvBlock(width, 3 * width, 5, rate)], 2, options, 3 * width))
    last = [
        ConvBlock(3 * width, 6 * width, 3, rate),
        ConvBlock(6 * width, 4 * width, 3, rate),
        ConvBlock(4 * width, 4 * width, 3, rate),
    ]
    chain.add_module("stage3", stage([MaxPool(kernel), *last], 3, options, 4 * width))
    side = 6 if options.stem else 2
    chain.add_module("head", head(options.head or "mlp", 4 * width, num_classes, 64 * width, side, pool=kernel))
    return chain


class NormBlock(Block):
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
            modules.append(NormBlock(channels, multiple * options.channels, options.dropout, family == "prevgg"))
            channels = multiple * options.channels
        chain.add_module(f"stage{i + 1}", stage(modules, i + 1, options, channels))
    name = options.head or FAMILIES[family].heads[0]
    chain.add_module("head", head(name, channels, num_classes, 64 * options.channels, HEAD_SIDE, pool=2))
    return chain
