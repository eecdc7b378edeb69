"""Rare classes in training pictures: crops that hold them, and things cut out of other pictures.

CamVid's poles, signs, pedestrians and bicyclists are 3 % of its pixels and four of the eleven classes that a mean IoU
counts.
"""

import random
from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from seg.data.statistics import DataStatistics

RARE_WEIGHT = 2.0
"""A class is rare if, where it occurs, it has less than half the pixels of the median class (its weight is above 2)."""


def rare_classes(statistics: DataStatistics) -> tuple[int, ...]:
    """Ids of the rare classes."""
    return tuple(c for c, weight in enumerate(statistics.median_frequency) if weight > RARE_WEIGHT)


class RarePictures:
    """Which of the pictures hold which rare class."""

    def __init__(self, labels: Sequence[np.ndarray], rare: tuple[int, ...]) -> None:
        holds = [np.isin(rare, label) for label in labels]
        self.by_class = {c: [i for i, has in enumerate(holds) if has[place]] for place, c in enumerate(rare)}

    def draw(self, seed: int) -> tuple[int, int] | None:
        """(picture, rare class in it): every class as often as the others; None where no picture holds any."""
        generator = random.Random(seed)
        found = [c for c, pictures in self.by_class.items() if pictures]
        if not found:
            return None
        chosen = generator.choice(found)
        return generator.choice(self.by_class[chosen]), chosen


def place_of(mask: Tensor, wanted: Sequence[int], crop: tuple[int, int]) -> tuple[int, int] | None:
    """(top, left) of a crop of the mask (h, w) around a random pixel of a random one of the wanted classes that it
    holds.

    None where it holds none, or where the crop is larger than the mask.
    """
    if mask.shape[0] < crop[0] or mask.shape[1] < crop[1]:
        return None
    present = [c for c in wanted if bool((mask == c).any())]
    if not present:
        return None
    pixels = (mask == present[int(torch.randint(len(present), ()))]).nonzero()
    pixel = pixels[int(torch.randint(len(pixels), ()))].tolist()
    top, left = (
        min(max(at - int(torch.randint(side, ())), 0), whole - side)
        for at, side, whole in zip(pixel, crop, mask.shape, strict=True)
    )
    return top, left


def paste(onto: tuple[Tensor, Tensor], other: tuple[Tensor, Tensor], classes: Sequence[int]) -> tuple[Tensor, Tensor]:
    """(picture (3, h, w), target (..., h, w)) with the other's pixels of these classes in place of its own.

    A target's first plane is the label where there are several (what teachers say lies behind it).
    """
    label = other[1][0] if other[1].ndim == 3 else other[1]
    cut = torch.isin(label, torch.tensor(classes, dtype=label.dtype))
    return torch.where(cut, other[0], onto[0]), torch.where(cut, other[1], onto[1])
