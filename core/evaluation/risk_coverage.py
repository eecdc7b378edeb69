"""Risk against coverage: the error rate of a network that leaves its least certain samples unanswered."""

from typing import Any

import torch
from torch import Tensor

RANKS = 8192
"""Bins of the ranking. Samples in one bin count as tied, and a part of a bin has the same part of its errors."""
CURVE_POINTS = 100
MAX_UNCERTAIN = 0.1


class RiskCoverage:
    """Counts samples and errors by certainty in O(bins) memory; sums live on the device of the last update."""

    def __init__(self) -> None:
        self._counts = torch.zeros(2, RANKS, dtype=torch.int64)  # samples, errors; bin 0 is the least certain

    def update(self, certainty: Tensor, correct: Tensor) -> None:
        """Adds samples: certainty (N,) in 0..1, correct (N,) bool."""
        bins = (certainty * RANKS).long().clamp_(0, RANKS - 1)
        counts = self._counts.to(certainty.device)
        counts[0] += torch.bincount(bins, minlength=RANKS)
        counts[1] += torch.bincount(bins[~correct], minlength=RANKS)
        self._counts = counts

    def above(self, thresholds: tuple[float, ...]) -> tuple[list[float], list[float]]:
        """Share of the samples above each threshold of certainty, and share of right ones among them."""
        samples, errors = self._counts.cpu().double().flip(1).cumsum(1).flip(1)[:, [int(RANKS * t) for t in thresholds]]
        return (samples / samples[0]).tolist(), (1.0 - errors / samples.clamp_min(1.0)).tolist()

    def aurc(self) -> float:
        """Area under risk (share of errors among the answered) over coverage 0..1; 0 is best, the error rate is chance.

        Geifman and El-Yaniv 2017 (arXiv 1705.08500); computed as the sum over samples, with ties spread evenly.
        """
        samples, errors = self._from_the_surest()
        before, wrong = samples.cumsum(0) - samples, errors.cumsum(0) - errors
        rate = errors / samples.clamp_min(1.0)
        first = before == 0
        before_or_one = before.clamp_min(1.0)
        # the integral over a bin of (wrong + rate x) / (before + x)
        later = errors + (wrong - rate * before) * torch.log1p(samples / before_or_one)
        return float(torch.where(first, errors, later).sum() / samples.sum())

    def caught(self, share: float = MAX_UNCERTAIN) -> float | None:
        """Share of all errors that lie among the `share` least certain samples; None without errors. If the error rate
        is above `share`, even a perfect ranking finds only share / error rate (`ceiling`).
        """
        samples, errors = self._counts.cpu().double()
        if not errors.sum():
            return None
        return float(_interpolate(samples, errors, share * float(samples.sum())) / errors.sum())

    def ceiling(self, share: float = MAX_UNCERTAIN) -> float | None:
        """The error recall of a perfect ranking."""
        samples, errors = (float(total) for total in self._counts.cpu().sum(1))
        return min(1.0, share * samples / errors) if errors else None

    def curve(self) -> list[dict[str, float]]:
        """(coverage, risk) at 100 evenly spaced coverages up to 1."""
        samples, errors = self._from_the_surest()
        total = float(samples.sum())
        points = [(i + 1) / CURVE_POINTS for i in range(CURVE_POINTS)]
        return [{"coverage": c, "risk": float(_interpolate(samples, errors, c * total)) / (c * total)} for c in points]

    def result(self) -> dict[str, Any]:
        """`aurc`, `error_recall_10` (with `error_recall_10_ceiling`) and the curve as JSON values."""
        return {
            "aurc": self.aurc(),
            "error_recall_10": self.caught(),
            "error_recall_10_ceiling": self.ceiling(),
            "risk_coverage": self.curve(),
        }

    def _from_the_surest(self) -> Tensor:
        return self._counts.cpu().double().flip(1)


def _interpolate(samples: Tensor, errors: Tensor, wanted: float) -> Tensor:
    """Errors among the `wanted` least certain samples; within a bin they are spread evenly."""
    before = samples.cumsum(0) - samples
    part = ((wanted - before) / samples.clamp_min(1.0)).clamp(0.0, 1.0)
    return (errors * part).sum()
