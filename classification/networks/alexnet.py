"""AlexNet in one column: five convolutions without BatchNorm; corruption errors are relative to it."""

from torch import Tensor, nn

from classification.networks.chain import Block, Chain, MaxPool, dropout, require_side, stage
from classification.networks.heads import head
from classification.options import ClassifierOptions


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

    def suffix(self, shared: Tensor) -> Tensor:
        return self.dropout(shared)


def alexnet(options: ClassifierOptions, num_classes: int) -> Chain:
    """(B, 3, h, w) -> (B, K); Krizhevsky 2014, arXiv 1404.5997, with channels as multiples of `width`.

    Three stages, max pooling begins the last two. With the stem 11x11 stride 4, pooling kernel 3 and an MLP head over 6
    x 6 points, h, w >= 63; without it, for CIFAR, 3x3 stride 2, kernel 2 and 2 x 2 points.
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
