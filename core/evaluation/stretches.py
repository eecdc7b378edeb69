"""Counts of labelled frames by stretch (a block of neighbouring frames), and intervals of metrics over stretches.

The frames of a stretch show the same things, so single frames would give intervals that are too narrow.
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple, Self, TypeVar

import numpy as np
import torch
from torch import Tensor

from steadyseg.core.evaluation.metrics import StreamingMetrics

DRAWS = 2000
INTERVAL = (2.5, 97.5)
"""Percentiles of the bootstrap metrics."""
Name = TypeVar("Name")


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

    def iou(self, times: Tensor) -> Tensor:
        """IoU (D, K) of each class over all stretches; NaN for a class that no label has.

        `times` (D, S) says how often each stretch counts in each of D draws.
        """
        confusion = torch.einsum("ds,skj->dkj", times, self.confusion)
        hit, present = confusion.diagonal(dim1=1, dim2=2), confusion.sum(2)
        return torch.where(present > 0, hit / (present + confusion.sum(1) - hit), torch.nan)

    def figures(self, times: Tensor) -> dict[str, Tensor]:
        """Accuracy, mIoU and ECE (D,) of all stretches together; 0 where no pixel is labelled."""
        pixels, right = self.confusion.sum((1, 2)), self.confusion.diagonal(dim1=1, dim2=2).sum(1)
        gap = self.bins[..., 0] * (self.bins[..., 1] - self.bins[..., 2])
        found = {
            "accuracy": times @ right / (times @ pixels),
            "miou": self.iou(times).nanmean(1),
            "ece": (times @ gap).abs().sum(1) / (times @ pixels),
        }
        return {key: value.nan_to_num(0.0) for key, value in found.items()}

    def intervals(self) -> dict[str, tuple[float, float, float]]:
        """Each metric with its 95 % interval."""
        return intervals(len(self.bins), self.figures)


def count_stretch(metrics: StreamingMetrics) -> dict[str, list[str]]:
    """Counts of the frames of one stretch, as lines of text: a tenth as long in a record as lists of numbers."""
    bins = [(one["count"], one["accuracy"] or 0, one["confidence"] or 0) for one in metrics.result()["reliability"]]
    return {"bins": _write(bins), "confusion": _write(metrics.confusion.tolist())}


def intervals(
    number: int, figures: Callable[[Tensor], Mapping[Name, Tensor]]
) -> dict[Name, tuple[float, float, float]]:
    """Each metric with its 95 % bootstrap interval over stretches.

    `figures` takes how often each stretch counts in each draw (D, S), and returns values (D,). One stretch alone has no
    interval: its ends are NaN.
    """
    whole = {key: float(value) for key, value in figures(torch.ones(1, number).double()).items()}
    if number == 1:
        return {key: (value, math.nan, math.nan) for key, value in whole.items()}
    dice = np.random.default_rng(0)
    counts = [np.bincount(dice.integers(number, size=number), minlength=number) for _ in range(DRAWS)]
    drawn = figures(torch.from_numpy(np.stack(counts)).double())
    edges = {key: np.percentile(values.numpy(), INTERVAL).tolist() for key, values in drawn.items()}
    return {key: (value, *edges[key]) for key, value in whole.items()}


def _write(matrix: Iterable[Iterable[float]]) -> list[str]:
    return [" ".join(f"{value:.6g}" if isinstance(value, float) else str(value) for value in row) for row in matrix]


def _read(matrices: Sequence[list[str]]) -> Tensor:
    return torch.tensor([[[float(word) for word in line.split()] for line in one] for one in matrices]).double()
