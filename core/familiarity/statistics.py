"""Statistics of one frame: the distance of its mean features from training frames, the certainty of its logits, and the
energy of its regions.

Everything is convolutions, sums and logarithms, so that it runs and exports with the network. Distances are squared
Mahalanobis distances over the number of channels.
"""

from typing import Self

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from steadyseg.core.familiarity.gaussians import Gaussians
from steadyseg.core.familiarity.record import LOGIT_STATISTICS

STRIDE = 4
"""Pixels of the picture between two sampled places, where a stage is not coarser already."""
SMALLEST = 1e-6
"""Added to a squared distance before its logarithm."""


class FrameDistance(nn.Module):
    """(B, C, h, w) or (B, C) features of a stage -> (B,) log distance of their mean from training frames."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.whiten = nn.Linear(channels, channels)
        self.requires_grad_(False)

    @classmethod
    def of(cls, frames: Gaussians) -> "FrameDistance":
        """Builds the distance from Gaussians of the mean features of whole frames."""
        stage = cls(len(frames.mean))
        stage.load_state_dict(
            {"whiten.weight": frames.matrix.float(), "whiten.bias": (-frames.matrix @ frames.mean).float()}
        )
        return stage

    def forward(self, features: Tensor) -> Tensor:
        return ((self.whiten(pooled(features.float())) ** 2).mean(1) + SMALLEST).log()


class ClassDistance(nn.Module):
    """(B, C, h, w) or (B, C) features of a stage -> (B,) log distance of their mean from the nearest class of
    pictures."""

    def __init__(self, channels: int, classes: int) -> None:
        super().__init__()
        self.whiten = nn.Conv2d(channels, channels, 1)
        self.classes = nn.Conv2d(channels, classes, 1)
        self.requires_grad_(False)

    @classmethod
    def of(cls, within: Gaussians) -> Self:
        """Builds the distance; `within` holds the deviations of features from the means of their classes."""
        stage = cls(len(within.mean), len(within.centres))
        values = {
            "whiten.weight": within.matrix[:, :, None, None],
            "whiten.bias": -within.matrix @ within.mean,
            "classes.weight": 2 * within.centres[:, :, None, None],
            "classes.bias": -(within.centres**2).sum(1),
        }
        stage.load_state_dict({name: value.float() for name, value in values.items()})
        return stage

    def at(self, features: Tensor) -> Tensor:
        """(B, C, h, w) -> (B, h, w) log distances to the nearest class at every position."""
        white = self.whiten(features.float())
        nearest = (white * white).sum(1) - self.classes(white).amax(1)  # |y|^2 - (2 m.y - |m|^2) of the nearest m
        return (nearest.clamp_min(0.0) / white.shape[1] + SMALLEST).log()

    def forward(self, features: Tensor) -> Tensor:
        return self.at(pooled(features.float())[:, :, None, None])[:, 0, 0]


def pooled(features: Tensor) -> Tensor:
    """(B, C, h, w) -> (B, C) means over all positions; (B, C) stays unchanged."""
    return features.mean((2, 3)) if features.ndim == 4 else features


def subsample(features: Tensor, step: int) -> Tensor:
    """Every `step`-th row and column, from the first; pooled features (B, C) stay unchanged."""
    return features if step == 1 else features[..., ::step, ::step]


def subsampling_step(height: int, features: Tensor) -> int:
    """Step that keeps a row of a stage for every `STRIDE` rows of a picture of this height. It is 1 if the stage is
    already as coarse."""
    return 1 if features.ndim < 4 else max(1, STRIDE // max(1, round(height / features.shape[-2])))


def logit_statistics(logits: Tensor) -> Tensor:
    """(B, K, h, w) or (B, K) -> (B, 3): mean entropy at temperature 1 over ln K, mean and spread of the largest logit's
    lead.

    They are computed on every `STRIDE`-th row and column. The lead is the difference to the mean of all logits, because
    a constant added to all logits changes no probability.
    """
    logits = logits[..., ::STRIDE, ::STRIDE].float().flatten(2) if logits.ndim > 2 else logits.float()[:, :, None]
    logs = F.log_softmax(logits, 1)
    entropy = -(logs.exp() * logs).sum(1).mean(1) / torch.tensor(float(logits.shape[1])).log()
    lead = logits.amax(1) - logits.mean(1)
    return torch.stack([entropy, lead.mean(1), spread(lead)], 1)


def energy(logits: Tensor) -> Tensor:
    """(B, K, h, w) or (B, K) -> (B, h, w) or (B, 1, 1): -log sum exp of the logits, higher where no class has much.

    Free energy (Liu et al. 2020, arXiv 2010.03759).
    """
    logits = logits if logits.ndim == 4 else logits[:, :, None, None]
    return -logits.float().logsumexp(1)


def spread(values: Tensor) -> Tensor:
    """(B, ...) -> (B,) standard deviation over all positions; 0 for a single position."""
    flat = values.flatten(1)
    return ((flat - flat.mean(1, keepdim=True)) ** 2).mean(1).sqrt()


def score_weights(stages: int, entropy: float = 0.0) -> Tensor:
    """Weights (S,) of the statistics in the score: the mean over the stages plus `entropy` times the entropy."""
    logits = [entropy if name == "entropy" else 0.0 for name in LOGIT_STATISTICS]
    return torch.cat([torch.full((stages,), 1.0 / stages), torch.tensor(logits)]).double()
