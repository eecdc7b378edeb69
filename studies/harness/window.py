"""The paper's temporal mean of VQ-BNN (arXiv 1907.05911): the exact weighted mean of the K frames before this one.

The product computes the recursion over all frames instead (`core/temporal.py`); studies compare the two. The published
code averages over later frames too (`centred_mean`).
"""

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import torch
from torch import Tensor

from steadyseg.core.motion import Motion
from steadyseg.core.prediction import Prediction


class WindowState(NamedTuple):
    """The last K predictions, newest first; all zeros is the start."""

    probs: Tensor
    """(n, B, K, ...)"""
    member_entropy: Tensor
    """(n, B, ...)"""
    ages: Tensor
    """(n,) 1 + the number of source frames between each prediction and the latest one; 0: the slot is empty."""


@dataclass(frozen=True)
class WindowSmoothing:
    """The averaging rule; it is called as `core.temporal.TemporalSmoothing` is, and follows no motion."""

    tau: float = 1.25
    """Decay time in source frames."""
    window: int = 5
    """K, the number of earlier frames in the mean."""
    motion: ClassVar[bool] = False

    def __call__(
        self, now: Prediction, state: WindowState | None, gap: int = 1, motion: Motion | None = None
    ) -> tuple[Prediction, WindowState]:
        """Averages this frame and the earlier frames that are at most K source frames old (Eq. 9-10).

        `gap` is the number of source frames since the previous call."""
        slots = self.window
        if state is None:
            state = WindowState(
                now.probs.new_zeros(slots, *now.probs.shape),
                now.member_entropy.new_zeros(slots, *now.member_entropy.shape),
                now.probs.new_zeros(slots),
            )
        ages = torch.where(state.ages > 0, state.ages + gap, state.ages)  # counted from the new frame, still plus one
        seen = (ages > 0) & (ages <= slots + 1)
        weights = torch.where(seen, torch.exp((1.0 - ages) / self.tau), torch.zeros_like(ages))
        share = 1.0 / (1.0 + weights.sum())
        mean = Prediction(
            (now.probs + torch.tensordot(weights, state.probs, dims=1)) * share,
            (now.member_entropy + torch.tensordot(weights, state.member_entropy, dims=1)) * share,
        )
        return mean, WindowState(
            torch.cat([now.probs[None], state.probs[:-1]]),
            torch.cat([now.member_entropy[None], state.member_entropy[:-1]]),
            torch.cat([torch.ones_like(ages[:1]), ages[:-1]]),
        )


def centred_mean(probs: Tensor, tau: float = 1.25, before: int = 5, after: int = 0) -> Tensor:
    """The mean over earlier and later frames, as in the paper's code: predictions (n, ...) of successive frames, and
    their means. A frame t frames away weighs exp(-|t| / tau); there are at most `before` frames before and `after`
    frames after."""
    places = torch.arange(len(probs))
    age = places[:, None] - places
    weights = torch.exp(-age.abs() / tau) * ((age <= before) & (age >= -after))
    return torch.tensordot(weights.to(probs.dtype) / weights.sum(1, keepdim=True), probs, dims=1)
