"""Temporal smoothing: an exponentially weighted mean of the recent frames' predictions (VQ-BNN, arXiv 1907.05911).

The prediction t source frames back weighs exp(-t / tau). Softmax first, then the mean. State is explicit: functions take it
and return the next one, None starts anew.
"""

import math
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from core.errors import InputError
from core.prediction import Prediction


class RecursionState(NamedTuple):
    """The running mean over all frames so far."""

    probs: Tensor
    """(B, K, ...)"""
    member_entropy: Tensor
    """(B, ...)"""
    mass: Tensor
    """(B,) sum of the weights, at most 1 / (1 - exp(-1 / tau))."""


class WindowState(NamedTuple):
    """The last K predictions and how many source frames they are old."""

    probs: Tensor
    """(n, B, K, ...), newest first: at most the current prediction and the K before it."""
    member_entropy: Tensor
    """(n, B, ...)"""
    ages: Tensor
    """(n,) age in source frames relative to the newest."""


State = RecursionState | WindowState


@dataclass(frozen=True)
class TemporalSmoothing:
    """The rule: recursion over all frames (window None) or the exact window of the K previous frames."""

    tau: float = 1.25
    """Decay time in source frames (published: 1.25, that is e^-0.8 per frame)."""
    window: int | None = None
    """K previous frames (published: 5), or None for the recursion (K to infinity); they differ by e^(-(K+1)/tau) of mass."""

    def __post_init__(self) -> None:
        if not (self.tau > 0 and math.isfinite(self.tau)):
            raise InputError(f"tau must be a positive number of frames, got {self.tau}")
        if self.window is not None and self.window < 0:
            raise InputError(f"the window must be 0 or more previous frames, got {self.window}")

    def __call__(self, now: Prediction, state: State | None, gap: int = 1) -> tuple[Prediction, State]:
        """Smooths one frame; `gap` is the number of source frames since the previous call (1: none was dropped)."""
        if gap < 1:
            raise ValueError(f"the frame gap must be 1 or more, got {gap}")
        if self.window is not None:
            if isinstance(state, RecursionState):
                raise ValueError("a window was given the state of the recursion; start anew with None")
            return smooth_window(now, state, self.tau, self.window, gap)
        if isinstance(state, WindowState):
            raise ValueError("the recursion was given the state of a window; start anew with None")
        return smooth_recursive(now, state, self.tau, gap)


def smooth_recursive(
    now: Prediction, state: RecursionState | None, tau: float, gap: int = 1
) -> tuple[Prediction, RecursionState]:
    """mass = 1 + d mass; mean += (now - mean) / mass, with d = exp(-gap / tau): no bias at the start (Eq. 12-13)."""
    if state is None:
        mass = now.probs.new_ones(now.probs.shape[0])
        return now, RecursionState(now.probs, now.member_entropy, mass)
    mass = 1.0 + math.exp(-gap / tau) * state.mass
    weight = 1.0 / mass
    mean = Prediction(
        torch.lerp(state.probs, now.probs, _over(weight, now.probs)),
        torch.lerp(state.member_entropy, now.member_entropy, _over(weight, now.member_entropy)),
    )
    return mean, RecursionState(mean.probs, mean.member_entropy, mass)


def smooth_window(
    now: Prediction, state: WindowState | None, tau: float, window: int, gap: int = 1
) -> tuple[Prediction, WindowState]:
    """The exact weighted mean of this frame and those at most `window` source frames older (Eq. 9-10)."""
    probs, member_entropy = now.probs[None], now.member_entropy[None]
    ages = torch.zeros(1, dtype=torch.long)
    if state is not None:
        kept = state.ages + gap <= window
        probs = torch.cat([probs, state.probs[kept]])
        member_entropy = torch.cat([member_entropy, state.member_entropy[kept]])
        ages = torch.cat([ages, state.ages[kept] + gap])
    weights = torch.softmax(-ages.double() / tau, dim=0).to(probs)  # normalised exp(-age / tau)
    mean = Prediction(
        torch.tensordot(weights, probs, dims=1),
        torch.tensordot(weights, member_entropy, dims=1),
    )
    return mean, WindowState(probs, member_entropy, ages)


def _over(weight: Tensor, like: Tensor) -> Tensor:
    """(B,) -> (B, 1, ...) with as many dimensions as `like`."""
    return weight.reshape(-1, *[1] * (like.ndim - 1))
