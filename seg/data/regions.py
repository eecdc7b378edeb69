"""Connected regions of equal ids in a map of class ids."""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np


class Region(NamedTuple):
    """Pixels of one id that touch each other at an edge or a corner."""

    id: int
    rows: slice
    columns: slice
    """The smallest box around it, as slices of the map."""
    mask: np.ndarray
    """(rows, columns) bool: its pixels in the box."""
    pixels: int


def connected_regions(ids: np.ndarray, min_pixels: int = 1) -> Iterator[Region]:
    """Yields the regions of (H, W) ids >= 0, by id, that have `min_pixels` or more; pixels below 0 are in no region."""
    import cv2

    for one in np.unique(ids[ids >= 0]):
        count, labels, boxes, _ = cv2.connectedComponentsWithStats((ids == one).astype(np.uint8), connectivity=8)
        for number in range(1, count):
            left, top, width, height, pixels = (int(value) for value in boxes[number])
            if pixels >= min_pixels:
                rows, columns = slice(top, top + height), slice(left, left + width)
                yield Region(int(one), rows, columns, labels[rows, columns] == number, pixels)
