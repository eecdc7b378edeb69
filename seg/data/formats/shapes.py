"""The painting of outlined objects into one label."""

from collections.abc import Callable, Sequence
from functools import partial
from itertools import groupby
from typing import Literal, NamedTuple

import numpy as np

from core.system.pictures import MAX_PIXELS
from seg.data.formats.source import UNLABELLED, Label

Overlaps = Literal["smaller", "later", "void"]
WINNERS = {"smaller": "the smaller object has them", "later": "the later object has them", "void": "they are void"}


class Shape(NamedTuple):
    """An outlined object."""

    name: str
    """Its class."""
    draw: Callable[[int, int], np.ndarray]
    """(height, width) -> (height, width) bool."""
    layer: int = 0
    """Objects of a higher layer hide those below."""


def painter(shapes: Sequence[Shape], size: tuple[int, int], names: Sequence[str], overlaps: Overlaps) -> partial[Label]:
    """Returns the callable that paints objects into one label of (height, width).

    `overlaps` decides which of two objects in a layer gets the pixels that they share. ValueError for a size that
    no picture has.
    """
    if min(size) < 1 or size[0] * size[1] > MAX_PIXELS:
        raise ValueError(f"a picture of {size[1]}x{size[0]}; it has 1 to {MAX_PIXELS} pixels")
    return partial(_paint, tuple(shapes), size, tuple(names), overlaps)


def _paint(shapes: tuple[Shape, ...], size: tuple[int, int], names: tuple[str, ...], overlaps: Overlaps) -> Label:
    ids, shared = np.full(size, UNLABELLED, np.uint8), 0
    pairs: set[tuple[str, str]] = set()
    for _, members in groupby(sorted(shapes, key=lambda shape: shape.layer), key=lambda shape: shape.layer):
        masks = [(names.index(shape.name), shape.draw(*size)) for shape in members]
        if overlaps == "smaller":
            masks.sort(key=lambda item: -int(item[1].sum()))
        layer, contested = np.full(size, UNLABELLED, np.uint8), np.zeros(size, bool)
        for class_id, mask in masks:
            clash = mask & (layer != UNLABELLED) & (layer != class_id)
            pairs.update((names[below], names[class_id]) for below in np.unique(layer[clash]))
            contested |= clash
            layer[mask] = class_id
        shared += int(contested.sum())
        covered = layer != UNLABELLED
        ids[covered] = np.where(contested & (overlaps == "void"), UNLABELLED, layer)[covered]
    if not shared:
        return Label(ids)
    below, above = min(pairs)
    more = f" and {len(pairs) - 1} more pairs" if len(pairs) > 1 else ""
    share = f"objects of two classes overlap in {shared / ids.size:.2%} of the pixels ({above} over {below}{more})"
    return Label(ids, f"{share}; {WINNERS[overlaps]}")
