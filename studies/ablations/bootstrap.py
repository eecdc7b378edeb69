"""The paired bootstrap over pictures: how far a mean change would go with other pictures of the same kind."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

RESAMPLES = 2000


@dataclass(frozen=True)
class Interval:
    """A mean change and what holds 95 % of the resampled ones."""

    mean: float
    low: float
    high: float
    by_seed: list[float]
    """Change of each training seed's networks."""


def paired_bootstrap(before: Sequence[Tensor], after: Sequence[Tensor], seed: int = 0) -> Interval:
    """Paired bootstrap of figures (pictures,) for each training seed; one draw of pictures serves all networks."""
    changes = torch.stack([b - a for a, b in zip(before, after, strict=True)]).double()  # (seeds, pictures)
    generator = torch.Generator().manual_seed(seed)
    count = changes.shape[1]
    drawn = torch.randint(count, (RESAMPLES, count), generator=generator)
    means = changes.mean(0)[drawn].mean(1)
    low, high = means.quantile(torch.tensor([0.025, 0.975], dtype=torch.float64)).tolist()
    return Interval(float(changes.mean()), low, high, changes.mean(1).tolist())
