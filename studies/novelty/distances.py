"""Distances of a picture's mean features from training frames' mean features, at any stage: baselines of novelty."""

from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np
import torch

from steadyseg.core.novelty.gaussians import GaussianSums
from steadyseg.core.novelty.statistics import FrameDistance

NEIGHBOURS = 5


class Bank:
    """Mean features of the training frames, as they are and as another camera would give them."""

    def __init__(self, rows: Sequence[dict[str, Any]], scored: Sequence[str]) -> None:
        self.rows, self.scored = rows, scored
        self.fitted = cache(self._fit)
        deepest = np.stack([row["pooled"][scored[0]] for row in rows])
        self.mean, self.deviation = deepest.mean(0), deepest.std(0) + 1e-6
        self.neighbours = (deepest - self.mean) / self.deviation

    def _fit(self, stage: str, cameras: bool) -> FrameDistance:
        sums = GaussianSums(len(self.rows[0]["pooled"][stage]), 1)
        for row in self.rows:
            if cameras or row["kind"] == "clean":
                sums.update(torch.from_numpy(row["pooled"][stage])[None], torch.zeros(1, dtype=torch.long))
        return FrameDistance.of(sums.fit())

    def distances(self, rows: Sequence[dict[str, Any]], stage: str, cameras: bool = True) -> np.ndarray:
        """(N,) log Mahalanobis distances."""
        with torch.inference_mode():
            found = self.fitted(stage, cameras)(torch.from_numpy(np.stack([row["pooled"][stage] for row in rows])))
        return found.double().numpy()

    def scores(self, rows: Sequence[dict[str, Any]]) -> dict[str, np.ndarray]:
        """Scores that are higher for what is novel."""
        first, last = self.scored[0], self.scored[-1]
        features = (np.stack([row["pooled"][first] for row in rows]) - self.mean) / self.deviation
        apart = np.sqrt(((features[:, None] - self.neighbours[None]) ** 2).mean(2))
        return {
            "distance, last stage": self.distances(rows, last),
            "the same, cameras not shown": self.distances(rows, last, cameras=False),
            f"{NEIGHBOURS} nearest neighbours": np.sort(apart, 1)[:, NEIGHBOURS - 1],
        }
