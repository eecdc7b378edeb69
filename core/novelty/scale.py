"""What is usual: the statistics of held-back frames, and the scale on which others are novel."""

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import torch
from torch import Tensor

from core.reference import ReferenceScores, binomial_interval


@dataclass(frozen=True)
class Scale:
    """What a record keeps of held-back frames; see the fields of `core.novelty.head.NoveltyParameters`."""

    mean: tuple[float, ...]
    deviation: tuple[float, ...]
    region_median: float
    region_rare: float
    scores: tuple[float, ...]

    @classmethod
    def of(cls, statistics: Tensor, regions: Tensor, weights: Tensor) -> Self:
        """Of frames that nothing was fitted on: statistics (N, S), log distances of regions (M,); weights (S,) of the
        score."""
        mean, deviation = statistics.mean(0), statistics.std(0).clamp_min(1e-6)
        median, rare = (round(float(np.quantile(regions.double().numpy(), share)), 6) for share in (0.5, 0.99))
        scores = ((statistics - mean) / deviation) @ weights
        return cls(
            rounded(mean), rounded(deviation), median, rare, tuple(sorted(round(one, 6) for one in scores.tolist()))
        )

    def standardise(self, statistics: Tensor) -> Tensor:
        """(N, S), in deviations from the mean."""
        mean, deviation = (torch.tensor(column, dtype=torch.float64) for column in (self.mean, self.deviation))
        return (statistics - mean) / deviation

    def alarms(self) -> dict[str, Any]:
        """How many of these frames are novel, and the interval of that share."""
        hits = sum(map(ReferenceScores(self.scores).is_novel, self.scores))
        interval = [round(end, 4) for end in binomial_interval(hits, len(self.scores))]
        return {"alarms": hits, "alarm_rate_interval": interval}


def rounded(values: Tensor) -> tuple[float, ...]:
    """As they stand in a record."""
    return tuple(round(one, 8) for one in values.tolist())
