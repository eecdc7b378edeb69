"""Networks as chains of blocks that can be split before the first random layer, and their common layers."""

from collections.abc import Iterable
from typing import Any

import torch.nn.functional as F
from torch import Tensor, nn

from steadyseg.classification.networks.layout import FAMILIES, MODELS
from steadyseg.classification.options import ClassifierOptions
from steadyseg.core.dropout import Dropout, is_stochastic
from steadyseg.core.errors import InputError
from steadyseg.core.smoothing import SpatialSmoothing
from steadyseg.core.stages import Stage, itself


class Block(nn.Module):
    """A part of a network with at most one dropout layer, split right before it: forward(x) == suffix(prefix(x)).

    The result of `prefix` may be used many times, so `suffix` changes nothing in place.
    """

    dropout: nn.Module

    def forward(self, x: Tensor) -> Tensor:
        return self.suffix(self.prefix(x))

    def prefix(self, x: Tensor) -> Any:
        raise NotImplementedError

    def suffix(self, shared: Any) -> Tensor:
        return self.dropout(shared)


class Chain(nn.Sequential):
    """Modules in sequence; a module that draws random numbers is a block or a chain.

    forward(x) == suffix(prefix(x)). `prefix` computes everything before the first active dropout layer, or the whole
    chain without such a layer. N dropout passes share its result, so it runs once.
    """

    def prefix(self, x: Tensor) -> tuple[int, Any]:
        """Returns (number of modules that ran, prefix of the next module)."""
        for done, module in enumerate(self):
            if is_stochastic(module):
                assert isinstance(module, Block | Chain)
                return done, module.prefix(x)
            x = module(x)
        return len(self), x

    def suffix(self, shared: tuple[int, Any]) -> Tensor:
        """Continues from the result of `prefix`: the random part, which may run any number of times."""
        done, x = shared
        modules = list(self)[done:]
        if modules:
            assert isinstance(modules[0], Block | Chain)
            x = modules[0].suffix(x)
        for module in modules[1:]:
            x = module(x)
        return x

    def named_stages(self) -> dict[str, Stage]:
        """Stages: the map of each part before the head."""
        return {name: Stage(module, itself) for name, module in self.named_children() if name != "head"}


def stage(modules: Iterable[nn.Module], number: int, options: ClassifierOptions, channels: int) -> Chain:
    """Returns the modules of stage `number` (from 1), with the smoothing after them where the stage is smoothed.

    `channels` is the number of output channels.
    """
    chain = Chain(*modules)
    published = FAMILIES[MODELS[options.network][0]].smoothed
    places = published if options.smoothing_places is None else options.smoothing_places
    if options.smoothing and number in places:
        padding = options.padding or "published"
        smoothing = SpatialSmoothing(options.prob, options.blur, padding, options.prob_scale, channels)
        chain.add_module("smooth", smoothing)
    return chain


def dropout(rate: float) -> nn.Module:
    """Returns an MC dropout layer; a rate of 0 makes none."""
    return Dropout(rate) if rate > 0 else nn.Identity()


class MaxPool(nn.Module):
    """Max pooling of stride 2 that raises InputError where a picture is too small for it."""

    def __init__(self, kernel: int) -> None:
        super().__init__()
        self.kernel = kernel

    def forward(self, x: Tensor) -> Tensor:
        require_side(x, self.kernel)
        return F.max_pool2d(x, self.kernel, 2)


def require_side(x: Tensor, least: int) -> None:
    """Raises InputError where a map has fewer rows or columns than the next layer needs."""
    height, width = x.shape[-2:]
    if min(height, width) < least:
        raise InputError(
            f"the pictures are too small for this network: a map of {height}x{width} points meets a layer that needs "
            f"{least}x{least}; use larger pictures or another network"
        )


def skip_rates(last: float, blocks: int) -> list[float]:
    """Returns stochastic depth's rate of each block: it rises linearly from 0 at the first block to `last`."""
    return [last * i / (blocks - 1) for i in range(blocks)]


def skip_branch(rate: float) -> nn.Module:
    """Returns stochastic depth at this rate. torchvision takes 3 s to import, so it is imported on use."""
    if not rate:
        return nn.Identity()
    from torchvision.ops import StochasticDepth

    layer: nn.Module = StochasticDepth(rate, "row")
    return layer


def stem(width: int, large: bool, activated: bool) -> nn.Sequential:
    """Returns the stem. large (ImageNet): 7x7 stride 2, then 3x3 max pooling stride 2; else (CIFAR) 3x3 stride 1.

    In pre-activation networks the stem has no BatchNorm and ReLU, because their blocks begin with these.
    """
    layers: list[nn.Module] = [conv(3, width, 7, 2) if large else conv(3, width, 3)]
    if activated:
        layers += norm_relu(width)
    if large:
        layers.append(nn.MaxPool2d(3, 2, padding=1))
    return nn.Sequential(*layers)


def conv(channels_in: int, channels_out: int, kernel: int, stride: int = 1, groups: int = 1) -> nn.Conv2d:
    """Returns a convolution that divides the size by the stride; it has no bias, since BatchNorm has one."""
    return nn.Conv2d(channels_in, channels_out, kernel, stride, kernel // 2, groups=groups, bias=False)


def norm_relu(channels: int) -> list[nn.Module]:
    return [nn.BatchNorm2d(channels), nn.ReLU(inplace=True)]
