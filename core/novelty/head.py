"""What a network says of a whole frame: how strange it is, which temperature fits it, and where it is strange."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from core.novelty.statistics import StageStatistics, logit_statistics
from core.prediction import Prediction, Sight
from core.taps import FeatureTaps

LEAST_LOG_TEMPERATURE, MOST_LOG_TEMPERATURE = -1.0, 2.5
"""0.37 to 12: beyond, a softmax is as good as certain or as good as uniform."""
MOST_DEVIATION, MOST_FITTED_DEVIATION = 1e4, 10.0
"""Standardised statistics end here: in the score, so that a picture of one colour gives numbers; in the temperature, because a
line is not to be drawn through what nothing was fitted on."""


@dataclass(frozen=True)
class Readings:
    """How score, temperature and regions are read from the statistics of a frame; all (S,)."""

    mean: Tensor
    """Of each statistic on frames of the own world."""
    deviation: Tensor
    weights: Tensor
    """Of the squared deviations upward in the squared score."""
    slopes: Tensor
    """Of the deviations in the log temperature."""
    level: float
    """The log temperature of a frame without deviations."""
    region: tuple[int, float, float]
    """The stage that regions are of; median and 99th percentile of its log distances over pixels of the own world."""


class NoveltyHead(nn.Module):
    """(features of the stages, logits) -> `Sight`; runs beside the network and exports with it."""

    def __init__(self, names: Sequence[str], stages: Sequence[StageStatistics], readings: Readings) -> None:
        super().__init__()
        self.names, self.stages = tuple(names), nn.ModuleList(stages)
        for name in ("mean", "deviation", "weights", "slopes"):
            self.register_buffer(name, getattr(readings, name).float().clone(), persistent=False)
        self.level, self.region = readings.level, readings.region

    def forward(self, features: Sequence[Tensor], logits: Tensor) -> Sight:
        found, logs = self.statistics(features, logits)
        deviations = ((found - self.mean) / self.deviation).clamp(-MOST_DEVIATION, MOST_DEVIATION)
        score = (deviations.clamp_min(0.0) ** 2 @ self.weights).sqrt()
        near = deviations.clamp(-MOST_FITTED_DEVIATION, MOST_FITTED_DEVIATION)
        log_temperature = (near @ self.slopes + self.level).clamp(LEAST_LOG_TEMPERATURE, MOST_LOG_TEMPERATURE)
        stage, median, rare = self.region
        return Sight(score, log_temperature.exp(), (logs[stage] - median) / (rare - median))

    def statistics(self, features: Sequence[Tensor], logits: Tensor) -> tuple[Tensor, list[Tensor]]:
        """(B, S), and the log distances of each stage."""
        columns, logs = [], []
        for stage, found in zip(self.stages, features, strict=True):
            statistics, distances = stage(found)
            columns.append(statistics)
            logs.append(distances)
        return torch.cat([*columns, logit_statistics(logits)], 1), logs


class WatchedPass(nn.Module):
    """One pass with its `Sight`, whose temperature it uses, or else the given one."""

    def __init__(self, network: nn.Module, head: NoveltyHead, temperature: float | None = None) -> None:
        super().__init__()
        self.network, self.head, self.temperature = network, head, temperature
        self.taps = FeatureTaps(network, head.names)

    def forward(self, batch: Tensor) -> Prediction:
        return self.predict(*self.look(batch))

    def look(self, batch: Tensor) -> tuple[Tensor, Sight]:
        """(B, K, h, w) logits as the network gives them, and what it says of the frame."""
        logits = self.network(batch)
        if not torch.is_autocast_enabled(batch.device.type):
            return logits, self.head(self.taps.take(), logits)
        with torch.autocast(batch.device.type, enabled=False):  # squared distances need more than 8 bits
            return logits, self.head(self.taps.take(), logits)

    def predict(self, logits: Tensor, sight: Sight) -> Prediction:
        fitting = sight.temperature[:, None, None, None]
        plain = Prediction.from_logits(logits, fitting if self.temperature is None else self.temperature)
        return Prediction(plain.probs, plain.member_entropy, sight)
