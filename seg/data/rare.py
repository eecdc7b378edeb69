"""Rare classes in training pictures: crops that contain them, and objects pasted from other pictures.

CamVid's poles, signs, pedestrians and bicyclists are 3 % of its pixels and four of the eleven classes that a mean IoU
counts.
"""

import random
from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from steadyseg.seg.data.statistics import DataStatistics

RARE_WEIGHT = 2.0
"""Median-frequency weight above which a class is rare: it has less than half the pixels of the median class."""


def rare_classes(statistics: DataStatistics) -> tuple[int, ...]:
    """Returns the ids of the rare classes."""
    return tuple(c for c, weight in enumerate(statistics.median_frequency) if weight > RARE_WEIGHT)


class RarePictures:
    """Index of the pictures that contain each rare class."""

    def __init__(self, pixels: np.ndarray, rare: tuple[int, ...]) -> None:
        """`pixels` (images, K or more) counts each class in each picture."""
        self.by_class = {c: np.flatnonzero(pixels[:, c]).tolist() for c in rare}

    def draw(self, seed: int) -> tuple[int, int] | None:
        """Draws (picture, rare class in it), every class equally often; None if no picture has a rare class."""
        generator = random.Random(seed)
        found = [c for c, pictures in self.by_class.items() if pictures]
        if not found:
            return None
        chosen = generator.choice(found)
        return generator.choice(self.by_class[chosen]), chosen


def place_of(mask: Tensor, wanted: Sequence[int], crop: tuple[int, int]) -> tuple[int, int] | None:
    """Returns (top, left) of a crop of the mask (h, w) around a random pixel of one of the wanted classes.

    The class is drawn from the wanted classes in the mask. None if the mask has no wanted class, or if the crop is
    larger than the mask.
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
    """Returns (picture (3, h, w), label (h, w)) with these classes' pixels of `other` pasted in."""
    cut = torch.isin(other[1], torch.tensor(classes, dtype=other[1].dtype))
    return torch.where(cut, other[0], onto[0]), torch.where(cut, other[1], onto[1])
