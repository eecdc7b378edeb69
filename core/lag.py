"""Temporal smoothing with a lag: the mean of a frame also uses the F frames after it, and comes F frames late.

The published weights are exp(-|t| / tau) on either side of the frame (VQ-BNN, arXiv 1907.05911, whose code has a window
of past and future frames). The past is the recursion of `core/temporal.py`, so it has no end. F predictions wait in the
state, each until F later ones have arrived. A break in the stream is a gap of infinity. The weights across it are 0 in
both directions, and the frames that wait before it still come out. A frame whose prediction is NaN waits with weight 0.
Every call returns the frame of F calls before; the first F calls after the start return no frame. Flow between distant
frames cannot be trusted, so this mean does not follow motion.
"""

import math
from dataclasses import dataclass
from typing import NamedTuple, cast

import torch
from torch import Tensor

from steadyseg.core.motion import Motion
from steadyseg.core.prediction import Prediction

TINY = 1e-9
"""Smallest divisor: before the first frame all masses are 0."""


class LaggedState(NamedTuple):
    """The mean up to the frame that came out last, and the F predictions after it; all zeros is the start."""

    probs: Tensor
    """(B, K, h, w)"""
    member_entropy: Tensor
    """(B, h, w)"""
    mass: Tensor
    """(B, 1): sum of the weights in the mean."""
    ahead_probs: Tensor
    """(B, F K, h, w): predictions that wait, the oldest first; one axis, as graphs take four."""
    ahead_entropy: Tensor
    """(B, F, h, w)"""
    ahead_decay: Tensor
    """(B, F): exp(-gap / tau) between each waiting frame and the frame before it; 0 after a break."""
    ahead_mass: Tensor
    """(B, F): 1; 0 where no frame waits yet, or the prediction was NaN."""


@dataclass(frozen=True)
class LaggedSmoothing:
    """The averaging rule; it has the same calls as `core.temporal.TemporalSmoothing`."""

    tau: float
    lag: int
    """F, 1 or more."""
    motion: bool = False

    def start(self, like: Prediction) -> LaggedState:
        """The state before the first frame: zeros for predictions of this shape."""
        batch, classes, height, width = like.probs.shape
        none = like.probs.new_zeros
        return LaggedState(
            torch.zeros_like(like.probs),
            torch.zeros_like(like.member_entropy),
            none(batch, 1),
            none(batch, self.lag * classes, height, width),
            none(batch, self.lag, height, width),
            none(batch, self.lag),
            none(batch, self.lag),
        )

    def __call__(
        self, now: Prediction, state: LaggedState | None, gap: float | Tensor = 1, motion: Motion | None = None
    ) -> tuple[Prediction, LaggedState]:
        """Takes a frame of each of B streams, and returns the mean of the frame F calls before.

        `gap`: source frames since the previous call, infinity after a break; a tensor (B, 1) has one gap a stream.
        """
        state = self.start(now) if state is None else state
        now = now.or_uniform()  # a weight of 0 would keep NaN
        batch, classes = now.probs.shape[:2]
        decay = (
            torch.exp(-gap / self.tau)
            if isinstance(gap, Tensor)
            else now.probs.new_full((batch, 1), math.exp(-gap / self.tau))
        )
        probs = torch.cat([state.ahead_probs, now.probs], 1)
        entropy = torch.cat([state.ahead_entropy, now.member_entropy[:, None]], 1)
        decays = torch.cat([state.ahead_decay, decay], 1)
        masses = torch.cat([state.ahead_mass, cast(Tensor, now.finite).to(decay.dtype)], 1)
        members = [
            Prediction(probs[:, place * classes : (place + 1) * classes], entropy[:, place])
            for place in range(self.lag + 1)
        ]

        mass = masses[:, :1] + decays[:, :1] * state.mass
        share = masses[:, :1] / mass.clamp_min(TINY)
        past = Prediction(state.probs, state.member_entropy)
        past = weighted_sum([past, members[0]], [1.0 - share, share])

        weights, carried = [mass], torch.ones_like(mass)
        for place in range(1, self.lag + 1):
            carried = carried * decays[:, place : place + 1]
            weights.append(carried * masses[:, place : place + 1])
        total = torch.cat(weights, 1).sum(1, keepdim=True).clamp_min(TINY)
        mean = weighted_sum([past, *members[1:]], [weight / total for weight in weights])
        after = (
            past.probs,
            past.member_entropy,
            mass,
            probs[:, classes:],
            entropy[:, 1:],
            decays[:, 1:],
            masses[:, 1:],
        )
        return Prediction(mean.probs, mean.member_entropy, finite=masses[:, :1] > 0), LaggedState(*after)


def weighted_sum(members: list[Prediction], weights: list[Tensor]) -> Prediction:
    """The sum of predictions, (B, K, h, w), each times its weight (B, 1)."""
    pairs = list(zip(members, weights, strict=True))
    probs = torch.stack([one.probs * weight[..., None, None] for one, weight in pairs]).sum(0)
    return Prediction(probs, torch.stack([one.member_entropy * weight[..., None] for one, weight in pairs]).sum(0))
