"""The loss on a plane through a network's weights, in directions as long as they are (Li et al. 2018, arXiv
1712.09913).

Both published rules give a random direction the norms of the weights. The paper's rule `filter` takes the norm of each
filter, the entries that one output channel reads. Rule `axis0` takes the norm over the output channels, at each place
of the kernel. It is the rule of the code of arXiv 2105.12639 and 2202.06709. Tensors of fewer than two dimensions stay
where they are: biases, and BatchNorm's scales and shifts. BatchNorm's running statistics stay as trained, too.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Literal

import torch
from torch import Tensor, nn

from steadyseg.core.errors import InputError
from steadyseg.core.seeds import mix_seed

Rule = Literal["axis0", "filter"]
Weights = dict[str, Tensor]
"""Tensors by their names in the network."""
STILL = ("pos_embed", "relative_position", "position_bias", "cls_token")
"""Parts of names that stay where they are too, as in the published code: positions are no filters."""


def moving_weights(network: nn.Module) -> Weights:
    """Copies of the tensors that a direction moves."""
    return {
        name: weight.detach().clone()
        for name, weight in network.named_parameters()
        if weight.ndim > 1 and not any(part in name for part in STILL)
    }


def random_direction(weights: Mapping[str, Tensor], rule: Rule, seed: int) -> Weights:
    """Gaussian entries, rescaled by the rule."""
    found = {}
    for number, (name, weight) in enumerate(weights.items()):
        generator = torch.Generator().manual_seed(mix_seed(seed, number))
        drawn = torch.randn(weight.shape, generator=generator, dtype=torch.float64).to(weight)
        found[name] = rescaled(drawn, weight, rule)
    return found


def rescaled(direction: Tensor, weight: Tensor, rule: Rule) -> Tensor:
    """The direction with the norms of the weight, by the rule; 0 where the direction has norm 0."""
    over = 0 if rule == "axis0" else tuple(range(1, weight.ndim))
    ours, theirs = (torch.linalg.vector_norm(x, dim=over, keepdim=True) for x in (direction, weight))
    return direction * torch.where(
        ours > 0, theirs / ours.clamp(min=torch.finfo(ours.dtype).tiny), torch.zeros_like(ours)
    )


@contextmanager
def moved(
    network: nn.Module, origin: Mapping[str, Tensor], directions: Sequence[tuple[float, Weights]]
) -> Iterator[None]:
    """While it is open the network's weights are origin + sum of factor * direction; afterwards they are the origin
    again."""
    named = dict(network.named_parameters())
    try:
        with torch.no_grad():
            for name, weight in origin.items():
                named[name].copy_(sum((factor * way[name] for factor, way in directions), weight))
        yield
    finally:
        with torch.no_grad():
            for name, weight in origin.items():
                named[name].copy_(weight)


def squared_norm(network: nn.Module) -> float:
    """|w|^2 of all weights, of which L2 decay is half times the decay."""
    return float(sum(weight.detach().double().square().sum() for weight in network.parameters()))


def sum_of_norms(network: nn.Module) -> float:
    """The published code's "L2": the sum over tensors of their norms, not squared (arXiv 2202.06709's landscapes)."""
    return float(sum(weight.detach().double().norm() for weight in network.parameters()))


def grid(points: int, reach: float) -> list[float]:
    """`points` places from -reach to reach, the middle one exactly 0. InputError for an even number, which has no
    middle."""
    if points < 3 or points % 2 == 0:
        raise InputError(f"a landscape needs an odd number of points a side, 3 or more, got {points}")
    half = points // 2
    return [reach * (place - half) / half for place in range(points)]
