"""Position of a pixel among the true labels: distance from a boundary, and size of its region."""

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

DISTANCES = (2, 4, 8, 16)
"""Pixels at which a new group begins: 0-1, 2-3, 4-7, 8-15, 16 and more."""
SIZES = (64, 256, 1024, 4096, 16384)
"""Pixels of a region at which a new group begins."""


def distance_groups(labels: Tensor, void: int) -> Tensor:
    """(H, W) labels -> (H, W) group of each pixel's distance from the nearest boundary, -1 for void.

    A pixel at distance 0 has a neighbour (of eight) with another label; void is no other label. The distance counts
    steps to one of the eight neighbours.
    """
    wild = labels == void
    known = labels.float()
    high = _most(torch.where(wild, -torch.inf, known))
    low = -_most(torch.where(wild, -torch.inf, -known))
    near = ((high != low) & ~wild).float()
    groups = torch.full_like(labels, len(DISTANCES))
    reached = near
    for distance in range(DISTANCES[-1]):
        first = (reached > 0) & (groups == len(DISTANCES))
        groups[first] = sum(distance >= start for start in DISTANCES)
        reached = _most(reached)
    return groups.masked_fill(wild, -1)


def _most(values: Tensor) -> Tensor:
    """Largest value in each pixel's 3x3 neighbourhood."""
    return F.max_pool2d(values[None, None], 3, 1, 1)[0, 0]


def size_groups(labels: Tensor, void: int) -> Tensor:
    """(H, W) labels -> (H, W) group of the size in pixels of the region of equal labels (eight neighbours), -1 for
    void."""
    import cv2

    ids = labels.cpu().numpy()
    sizes = np.zeros(ids.shape, np.int64)
    for value in np.unique(ids):
        if value != void:
            _, parts, stats, _ = cv2.connectedComponentsWithStats((ids == value).astype(np.uint8), connectivity=8)
            sizes += np.where(ids == value, stats[parts, cv2.CC_STAT_AREA], 0)
    groups = torch.from_numpy(np.digitize(sizes, SIZES))
    return groups.masked_fill(labels.cpu() == void, -1)


def interval_names(starts: tuple[int, ...]) -> list[str]:
    """0-1, 2-3, ..., 16+ of the starts 2, ..., 16."""
    edges = (0, *starts)
    return [f"{low}-{high - 1}" for low, high in zip(edges, starts, strict=False)] + [f"{starts[-1]}+"]
