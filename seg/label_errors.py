"""Suspect labels by confident learning (Northcutt et al. 2021, arXiv 1911.00068), pixels gathered to regions.

The threshold of class k is the mean probability of k over all pixels that are labelled k. A pixel is confidently of
class k if k is the most probable class that reaches its threshold. Pixels that are confidently of another class than
their label are the off-diagonal of the confident joint, as in cleanlab (`filter_by="confident_learning"`).
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from steadyseg.seg.data.regions import Region, connected_regions

MIN_PIXELS = 50
ROUNDING = 1e-6
"""Error of a mean of equal probabilities, as in cleanlab."""


class ConfidentJoint:
    """Class thresholds and the confident joint, each of one pass over the data."""

    def __init__(self, classes: int) -> None:
        self._sums, self._counts = np.zeros(classes), np.zeros(classes, np.int64)
        self.joint = np.zeros((classes, classes), np.int64)
        """(K, K) pixels by [label, confident class]."""

    @property
    def thresholds(self) -> np.ndarray:
        """(K,) mean probability of each class over the pixels with its label. It is infinite for a class that never
        occurs, which is then suggested nowhere."""
        return np.where(self._counts > 0, self._sums / np.maximum(self._counts, 1), np.inf)

    def add_to_thresholds(self, probs: np.ndarray, label: np.ndarray) -> None:
        """First pass: adds a picture, (K, H, W) probabilities and (H, W) class ids; other ids are void."""
        known = label < len(probs)
        ids = label[known]
        of_label = np.take_along_axis(probs[:, known], ids[None].astype(np.int64), 0)[0]
        self._sums += np.bincount(ids, of_label, len(probs))
        self._counts += np.bincount(ids, minlength=len(probs))

    def confident_classes(self, probs: np.ndarray) -> np.ndarray:
        """Returns the confident class of each pixel, (H, W), -1 for none; after the first pass."""
        passing = np.where(probs >= self.thresholds[:, None, None] - ROUNDING, probs, -1.0)
        return np.where(passing.max(0) >= 0, passing.argmax(0), -1)

    def add_to_joint(self, label: np.ndarray, confident: np.ndarray) -> None:
        """Second pass: adds a picture, (H, W) class ids and confident classes."""
        classes = len(self.joint)
        counted = (label < classes) & (confident >= 0)
        pairs = label[counted].astype(np.int64) * classes + confident[counted]
        self.joint += np.bincount(pairs, minlength=classes**2).reshape(classes, classes)


class Suspect(NamedTuple):
    """A region of one picture whose label is probably wrong."""

    label: int
    suggested: int
    region: Region
    self_confidence: float
    """Mean probability of the label."""
    confidence: float
    """Mean probability of the suggested class."""


def find_suspects(
    confident: np.ndarray, probs: np.ndarray, label: np.ndarray, min_pixels: int = MIN_PIXELS
) -> Iterator[Suspect]:
    """Yields the connected regions of one label and one other confident class, of `min_pixels` or more.

    Args:
        confident: (H, W), as `ConfidentJoint.confident_classes` returns it.
        probs: (K, H, W).
        label: (H, W) class ids; other ids are void.
    """
    classes = len(probs)
    wrong = (label < classes) & (confident >= 0) & (confident != label)
    for region in connected_regions(np.where(wrong, label.astype(np.int64) * classes + confident, -1), min_pixels):
        given, suggested = divmod(region.id, classes)
        inside = probs[:, region.rows, region.columns][:, region.mask]
        yield Suspect(given, suggested, region, float(inside[given].mean()), float(inside[suggested].mean()))
