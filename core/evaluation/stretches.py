"""Counts of labelled frames by stretch, and intervals of figures over stretches.

The frames of a stretch show the same things, so single frames would give intervals that are too narrow.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple, Self

import numpy as np
import torch
from torch import Tensor

from core.evaluation.figures import accuracy_of, class_iou, mean_of_known
from core.evaluation.metrics import StreamingMetrics

DRAWS = 2000
INTERVAL = (2.5, 97.5)
"""Percentiles of the drawn figures."""


def split_evenly(frames: int, length: int) -> list[int]:
    """Lengths of equal stretches that hold all frames, of about `length` each."""
    edges = np.linspace(0, frames, max(1, round(frames / length)) + 1).round().astype(int)
    return [int(after - before) for before, after in pairwise(edges)]


class Stretches(NamedTuple):
    """Counts of S stretches."""

    confusion: Tensor
    """(S, K, K), true by predicted class."""
    bins: Tensor
    """(S, 10, 3): pixels, accuracy and mean confidence of each bin of confidence."""

    @classmethod
    def read(cls, counts: Sequence[Mapping[str, list[str]]]) -> Self:
        """Reads what `count_stretch` returned for each stretch."""
        return cls(*(_read([one[key] for one in counts]) for key in ("confusion", "bins")))

    def draw(self, places: np.ndarray) -> Self:
        """The stretches at these places, some of them more than once."""
        return type(self)(*(part[places] for part in self))

    def iou(self) -> list[float | None]:
        """IoU of each class over all stretches together; None where it is absent."""
        return class_iou(self.confusion.sum(0))

    def figures(self) -> dict[str, float]:
        """Accuracy, mIoU and ECE of all stretches together."""
        gap = (self.bins[..., 0] * (self.bins[..., 1] - self.bins[..., 2])).sum(0)
        return {
            "accuracy": accuracy_of(self.confusion.sum(0)) or 0.0,
            "miou": mean_of_known(self.iou()) or 0.0,
            "ece": float(gap.abs().sum() / self.confusion.sum()),
        }

    def intervals(self) -> dict[str, tuple[float, float, float]]:
        """Each of the figures with its 95 % interval."""
        return intervals(len(self.bins), lambda places: self.draw(places).figures())


def count_stretch(metrics: StreamingMetrics) -> dict[str, list[str]]:
    """Counts of the frames of one stretch, as lines of text: a tenth as long in a record as lists of numbers."""
    bins = [(one["count"], one["accuracy"] or 0, one["confidence"] or 0) for one in metrics.result()["reliability"]]
    return {"bins": _write(bins), "confusion": _write(metrics.confusion.tolist())}


def intervals(
    number: int, figures: Callable[[np.ndarray], Mapping[str, float]]
) -> dict[str, tuple[float, float, float]]:
    """Each figure with the 95 % interval of stretches drawn with replacement; `figures` takes the places drawn."""
    dice = np.random.default_rng(0)
    drawn = [figures(dice.integers(number, size=number)) for _ in range(DRAWS)]
    edges = {key: np.percentile([one[key] for one in drawn], INTERVAL).tolist() for key in drawn[0]}
    return {key: (value, *edges[key]) for key, value in figures(np.arange(number)).items()}


def _write(matrix: Iterable[Iterable[float]]) -> list[str]:
    return [" ".join(f"{value:.6g}" if isinstance(value, float) else str(value) for value in row) for row in matrix]


def _read(matrices: Sequence[list[str]]) -> Tensor:
    return torch.tensor([[[float(word) for word in line.split()] for line in one] for one in matrices]).double()
