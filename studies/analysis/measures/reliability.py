"""Calibration of confidence within many groups of samples at once: classes, distances, sizes, familiarity."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

BINS = 15
CONFIDENT = 0.9
"""Errors above it are confident ones."""
FLOOR = 1e-12
"""Smallest probability under the logarithm, as in all metrics."""


class GroupTally:
    """Counts of samples by group in O(groups) memory."""

    def __init__(self, groups: int) -> None:
        self._sums = torch.zeros(groups, 5, dtype=torch.float64)  # samples, correct, confidence, nll, confident errors
        self._bins = torch.zeros(groups, BINS, 3, dtype=torch.float64)  # samples, correct, confidence

    def add(self, groups: Tensor, confidence: Tensor, correct: Tensor, nll: Tensor) -> None:
        """Ids (N,) of each sample's group, below 0: none; confidence (N,) in 0..1, correct (N,) bool, nll (N,) nats."""
        kept = groups >= 0
        ids, c, right, loss = (x[kept].cpu() for x in (groups, confidence.double(), correct.double(), nll.double()))
        confident = ((c > CONFIDENT) & (right == 0)).double()
        self._sums.index_add_(0, ids, torch.stack([torch.ones_like(c), right, c, loss, confident], 1))
        # Bins (a, b], as everywhere here.
        places = ids * BINS + (c * BINS).ceil().long().sub(1).clamp(0, BINS - 1)
        self._bins.view(-1, 3).index_add_(0, places, torch.stack([torch.ones_like(c), right, c], 1))

    def merged(self, groups: Sequence[Sequence[int]]) -> "GroupTally":
        """A tally whose groups are unions of these groups."""
        made = GroupTally(len(groups))
        for number, members in enumerate(groups):
            made._sums[number] = self._sums[list(members)].sum(0)
            made._bins[number] = self._bins[list(members)].sum(0)
        return made

    def rows(self, names: Sequence[str]) -> list[dict[str, Any]]:
        """One for each group that has samples; `gap` is confidence minus accuracy: above 0 it is too sure."""
        total = float(self._sums[:, 0].sum())
        found = []
        for name, sums, bins in zip(names, self._sums, self._bins, strict=True):
            count, right, confidence, nll, confident = map(float, sums)
            if count:
                ece = float((bins[:, 2] - bins[:, 1]).abs().sum()) / count
                found.append(
                    {
                        "group": name,
                        "samples": round(count),
                        "share": count / total,
                        "accuracy": right / count,
                        "confidence": confidence / count,
                        "gap": (confidence - right) / count,
                        "ece_15": ece,
                        "nll": nll / count,
                        "confident_errors": confident / count,
                    }
                )
        return found


def scores(probs: Tensor, labels: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """(confidence, correct, nll), each (N,), of probs (B, K, ...) and labels (B, ...) in 0..K-1."""
    confidence, predicted = probs.max(1)
    of_truth = probs.gather(1, labels[:, None])[:, 0]
    return confidence.flatten(), (predicted == labels).flatten(), -of_truth.clamp(min=FLOOR).log().flatten()
