"""Statistics of one frame: how far its features lie from the classes' means, and how sure its logits are.

Everything is convolutions, sums and logarithms, so that it runs and exports with the network. A stage's features are whitened
by a 1x1 convolution on every `STRIDE`-th pixel of the picture; distances are squared Mahalanobis distances over the number of
channels.
"""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from core.novelty.gaussians import Gaussians

STRIDE = 4
"""Pixels of the picture between two places that are looked at, where a stage is not coarser already."""
SMALLEST = 1e-6
"""Added to a squared distance before its logarithm."""
STAGE_STATISTICS = ("distance", "spread", "pooled")
LOGIT_STATISTICS = ("entropy", "lead", "lead_spread")


class StageStatistics(nn.Module):
    """(B, C, h, w) or (B, C) features of one stage -> statistics (B, 3) and log distances (B, h', w').

    distance: mean over places of the log distance to the nearest class; spread: its standard deviation; pooled: the log
    distance of the frame's mean feature from the training frames'.
    """

    def __init__(self, channels: int, classes: int, step: int) -> None:
        """`step`: every how many-th pixel of the stage is looked at."""
        super().__init__()
        self.whiten = nn.Conv2d(channels, channels, 1, stride=step)
        self.classes = nn.Conv2d(channels, classes, 1)
        self.pool = nn.Linear(channels, channels)
        self.requires_grad_(False)

    @classmethod
    def of(cls, within: Gaussians, frames: Gaussians, step: int) -> "StageStatistics":
        """`within`: of the features around their classes; `frames`: of the features' means over whole frames."""
        stage = cls(len(within.mean), len(within.centres), step)
        back = torch.linalg.inv(within.matrix)  # the pooled features reach `pool` whitened
        values = {
            "whiten.weight": within.matrix[:, :, None, None],
            "whiten.bias": -within.matrix @ within.mean,
            "classes.weight": -2 * within.centres[:, :, None, None],
            "classes.bias": (within.centres**2).sum(1),
            "pool.weight": frames.matrix @ back,
            "pool.bias": frames.matrix @ (within.mean - frames.mean),
        }
        stage.load_state_dict({name: value.float() for name, value in values.items()})
        return stage

    def forward(self, features: Tensor) -> tuple[Tensor, Tensor]:
        if features.ndim == 2:
            features = features[:, :, None, None]
        white = self.whiten(features.float())
        nearest = (white**2).sum(1) + self.classes(white).amin(1)  # |y|^2 - 2 m.y + |m|^2 of the nearest m
        logs = (nearest.clamp_min(0.0) / white.shape[1] + SMALLEST).log()
        pooled = ((self.pool(white.mean((2, 3))) ** 2).mean(1) + SMALLEST).log()
        return torch.stack([logs.mean((1, 2)), spread(logs), pooled], 1), logs


def logit_statistics(logits: Tensor) -> Tensor:
    """(B, K, h, w) or (B, K) -> (B, 3): mean entropy at temperature 1 over ln K, mean and spread of the largest logit's lead.

    Of every `STRIDE`-th pixel. The lead is over the mean of all logits: a constant added to all of them changes no probability.
    """
    logits = logits[..., ::STRIDE, ::STRIDE].float().flatten(2) if logits.ndim > 2 else logits.float()[:, :, None]
    logs = F.log_softmax(logits, 1)
    entropy = -(logs.exp() * logs).sum(1).mean(1) / torch.tensor(float(logits.shape[1])).log()
    lead = logits.amax(1) - logits.mean(1)
    return torch.stack([entropy, lead.mean(1), spread(lead)], 1)


def spread(values: Tensor) -> Tensor:
    """(B, ...) -> (B,) standard deviation over all places; 0 for a single place."""
    flat = values.flatten(1)
    return ((flat - flat.mean(1, keepdim=True)) ** 2).mean(1).sqrt()


def statistic_names(stages: tuple[str, ...]) -> list[str]:
    """The columns of a frame's statistics."""
    return [f"{stage}.{name}" for stage in stages for name in STAGE_STATISTICS] + list(LOGIT_STATISTICS)
