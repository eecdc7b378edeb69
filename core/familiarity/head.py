"""The familiarity head of a network: score and energy of a frame, from its features and logits."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from steadyseg.core.familiarity.record import FamiliarityRecord
from steadyseg.core.familiarity.statistics import ClassDistance, FrameDistance, energy, logit_statistics, subsample
from steadyseg.core.frame import FrameScores
from steadyseg.core.prediction import Prediction
from steadyseg.core.predictors import SplitNetwork, forward_passes, running_mean
from steadyseg.core.stages import StageFeatures

MAX_DEVIATION = 1e4
"""Standardised statistics are clipped here, so that a picture of one colour gives finite scores."""


class FrameStatistics(nn.Module):
    """Computes the statistics of frames from (features of `names`, logits)."""

    def __init__(
        self, names: Sequence[str], steps: Sequence[int], stages: Sequence[FrameDistance | ClassDistance]
    ) -> None:
        """`steps`: for each stage, the step between the rows and columns that are used."""
        super().__init__()
        self.names, self.steps, self.stages = tuple(names), tuple(steps), nn.ModuleList(stages)

    def subsample(self, features: Sequence[Tensor]) -> list[Tensor]:
        """Subsamples the features of each stage first: a decoder's last stage is as large as the picture."""
        return [subsample(found, step) for found, step in zip(features, self.steps, strict=True)]

    def energy(self, logits: Tensor) -> Tensor:
        """(B, K, h, w) or (B, K) -> (B, h', w') energies, at the rows and columns of the last stage that are used."""
        return energy(logits if logits.ndim == 2 else subsample(logits, self.steps[-1]))

    def statistics(self, features: Sequence[Tensor], logits: Tensor) -> Tensor:
        """Statistics (B, S) of subsampled features, one column a stage, then the columns of `LOGIT_STATISTICS`."""
        distances = [stage(found) for stage, found in zip(self.stages, features, strict=True)]
        return torch.cat([torch.stack(distances, 1), logit_statistics(logits)], 1)


class FamiliarityHead(FrameStatistics):
    """(features of `names`, logits) -> `FrameScores`; runs beside the network and exports with it."""

    mean: Tensor
    deviation: Tensor
    weights: Tensor

    def __init__(self, record: FamiliarityRecord, stages: Sequence[FrameDistance | ClassDistance]) -> None:
        super().__init__(record.stages, record.steps, stages)
        columns = {"mean": record.mean, "deviation": record.deviation, "weights": record.weights}
        for name, column in columns.items():
            self.register_buffer(name, torch.tensor(column, dtype=torch.float32), persistent=False)
        self.energy_median, self.energy_rare = record.energy_median, record.energy_rare
        self.reference = record.reference()

    def forward(self, features: Sequence[Tensor], logits: Tensor) -> FrameScores:
        score = self.score(self.statistics(self.subsample(features), logits))
        scale = 1.0 / (self.energy_rare - self.energy_median)
        return FrameScores(score, (self.energy(logits) - self.energy_median) * scale)

    def score(self, statistics: Tensor) -> Tensor:
        """Statistics (B, S) -> scores (B,)."""
        deviations = ((statistics - self.mean) / self.deviation).clamp(-MAX_DEVIATION, MAX_DEVIATION)
        return deviations @ self.weights


class WatchedPredictor(nn.Module):
    """The mean of N passes at the given temperature, with the scores of the frame.

    It is a `SplitNetwork` itself: the shared prefix also returns the features that it computes.
    """

    def __init__(self, network: nn.Module, head: FamiliarityHead, temperature: float = 1.0, samples: int = 1) -> None:
        super().__init__()
        self.network, self.head, self.temperature, self.samples = network, head, temperature, samples
        self.taps = StageFeatures(network, head.names)

    def forward(self, batch: Tensor) -> Prediction:
        *_, mean = running_mean(self.predict(*one) for one in forward_passes(self, batch, self.samples))
        return mean

    def forward_with_scores(self, batch: Tensor) -> tuple[Tensor, FrameScores]:
        """Makes one pass: the network's logits (B, K, h, w) and the scores of the frame."""
        return self.suffix(self.prefix(batch))

    def prefix(self, batch: Tensor) -> tuple[Any, dict[str, Tensor]]:
        """Computes the part that passes share, and its features."""
        shared = self.network.prefix(batch) if isinstance(self.network, SplitNetwork) else batch
        return shared, self.taps.seen()

    def suffix(self, shared: tuple[Any, dict[str, Tensor]]) -> tuple[Tensor, FrameScores]:
        """Computes the rest of a pass; returns logits and scores as `forward_with_scores` does."""
        rest, seen = shared
        logits = self.network.suffix(rest) if isinstance(self.network, SplitNetwork) else self.network(rest)
        seen = seen | self.taps.seen()
        features = [seen[name] for name in self.head.names]
        if not torch.is_autocast_enabled(logits.device.type):
            return logits, self.head(features, logits)
        with torch.autocast(logits.device.type, enabled=False):  # squared distances need more than 8 bits
            return logits, self.head(features, logits)

    def predict(self, logits: Tensor, scores: FrameScores) -> Prediction:
        plain = Prediction.from_logits(logits, self.temperature)
        return Prediction(plain.probs, plain.member_entropy, scores)
