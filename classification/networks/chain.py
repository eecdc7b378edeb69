"""Networks as chains of blocks that can be cut before the first dropout layer that draws, and the layers all of them
use."""

from collections.abc import Iterable
from typing import Any

import torch.nn.functional as F
from torch import Tensor, nn

from classification.networks.layout import smoothed_stages
from classification.options import ClassifierOptions
from core.dropout import Dropout, is_stochastic
from core.errors import InputError
from core.smoothing import SpatialSmoothing
from core.stages import Stage, itself


class Block(nn.Module):
    """A piece of a network with at most one dropout layer, cut right before it: forward(x) == suffix(prefix(x)).

    What `prefix` returns may be used many times, so `suffix` changes nothing in place.
    """

    def forward(self, x: Tensor) -> Tensor:
        return self.suffix(self.prefix(x))

    def prefix(self, x: Tensor) -> Any:
        raise NotImplementedError

    def suffix(self, shared: Any) -> Tensor:
        raise NotImplementedError


class Chain(nn.Sequential):
    """Modules in their order; those that draw random numbers are blocks or chains themselves.

    forward(x) == suffix(prefix(x)); `prefix` is everything before the first dropout layer that draws, which N dropout
    passes share, so it needs to run once. Without such a layer it is the whole chain.
    """

    def prefix(self, x: Tensor) -> tuple[int, Any]:
        """Returns (modules done, what the next one's own prefix gave)."""
        for done, module in enumerate(self):
            if is_stochastic(module):
                assert isinstance(module, Block | Chain)
                return done, module.prefix(x)
            x = module(x)
        return len(self), x

    def suffix(self, shared: tuple[int, Any]) -> Tensor:
        """From `prefix`'s result on: the random part, may be called any number of times."""
        done, x = shared
        modules = list(self)[done:]
        if modules:
            x = modules[0].suffix(x)  # type: ignore[operator]
        for module in modules[1:]:
            x = module(x)
        return x

    def tap_points(self) -> dict[str, Stage]:
        """The map of each part before the head."""
        return {name: Stage(module, itself) for name, module in self.named_children() if name != "head"}


def stage(modules: Iterable[nn.Module], number: int, options: ClassifierOptions, channels: int) -> Chain:
    """The modules of stage `number` (from 1) and, where it is smoothed, the smoothing after them; `channels` leave
    it."""
    chain = Chain(*modules)
    if number in smoothed_stages(options):
        smoothing = SpatialSmoothing(options.prob, options.blur, options.padding or "published", channels=channels)
        chain.add_module("smooth", smoothing)
    return chain


def dropout(rate: float) -> nn.Module:
    """MC dropout; rate 0 makes no layer."""
    return Dropout(rate) if rate > 0 else nn.Identity()


class MaxPool(nn.Module):
    """Max pooling that says in one line when a picture is too small for it."""

    def __init__(self, kernel: int, stride: int = 2) -> None:
        super().__init__()
        self.kernel, self.stride = kernel, stride

    def extra_repr(self) -> str:
        return f"kernel={self.kernel}, stride={self.stride}"

    def forward(self, x: Tensor) -> Tensor:
        require_side(x, self.kernel)
        return F.max_pool2d(x, self.kernel, self.stride)


def require_side(x: Tensor, least: int) -> None:
    """InputError where a map has fewer rows or columns than what comes next needs."""
    height, width = x.shape[-2:]
    if min(height, width) < least:
        raise InputError(
            f"the pictures are too small for this network: a map of {height} x {width} points meets a layer that needs "
            f"{least} x {least}; use larger pictures or another network"
        )
