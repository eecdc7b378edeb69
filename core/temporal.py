"""Temporal smoothing: an exponentially weighted mean of the recent frames' predictions (VQ-BNN, arXiv 1907.05911).

The prediction t source frames back weighs exp(-t / tau). Softmax comes first, then the mean. State is explicit:
functions take it and return the next one; None, or zeros, starts anew. Shapes never change, so that a graph can carry
the state.

Beyond the paper, the mean can follow the motion: it is warped along the optical flow between the frames, and where a
pixel looks unlike the one it came from, the past weighs less (`core/motion.py`).
"""

import math
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from core.errors import InputError
from core.motion import Motion, warp
from core.prediction import Prediction


class RecursionState(NamedTuple):
    """The running mean over all frames so far; all zeros is the start."""

    probs: Tensor
    """(B, K, ...)"""
    member_entropy: Tensor
    """(B, ...)"""
    mass: Tensor
    """(B,), or (B, ...) where the mean follows motion: sum of the weights, at most 1 / (1 - exp(-1 / tau)); 0: no frame
    yet."""


class WindowState(NamedTuple):
    """The last n predictions, newest first; all zeros is the start."""

    probs: Tensor
    """(n, B, K, ...)"""
    member_entropy: Tensor
    """(n, B, ...)"""
    ages: Tensor
    """(n,) 1 + the number of source frames between each prediction and the latest one; 0: the slot is empty."""


State = RecursionState | WindowState


@dataclass(frozen=True)
class TemporalSmoothing:
    """The averaging rule: the recursion over all frames (window None), which may follow motion, or the exact window of
    K previous frames."""

    tau: float = 1.25
    """Decay time in source frames (published: 1.25, that is e^-0.8 per frame)."""
    window: int | None = None
    """K previous frames (published: 5), or None for the recursion (K to infinity); they differ by e^(-(K+1)/tau) of
    mass."""
    motion: bool = False
    """Warp the mean along the motion between frames before this one is added; recursion only."""

    def __post_init__(self) -> None:
        if not (self.tau > 0 and math.isfinite(self.tau)):
            raise InputError(f"tau must be a positive number of frames, got {self.tau}")
        if self.window is not None and self.window < 0:
            raise InputError(f"the window must be 0 or more previous frames, got {self.window}")
        if self.motion and self.window is not None:
            raise InputError("a window keeps its frames where they were; omit --window or --motion")

    def start(self, like: Prediction) -> State:
        """The state before the first frame: zeros of the prediction's shape."""
        if self.window is None:
            shape = like.member_entropy.shape if self.motion else like.probs.shape[:1]
            mass = like.probs.new_zeros(shape)
            return RecursionState(torch.zeros_like(like.probs), torch.zeros_like(like.member_entropy), mass)
        slots = self.window
        return WindowState(
            like.probs.new_zeros(slots, *like.probs.shape),
            like.member_entropy.new_zeros(slots, *like.member_entropy.shape),
            like.probs.new_zeros(slots),
        )

    def __call__(
        self, now: Prediction, state: State | None, gap: int | Tensor = 1, motion: Motion | None = None
    ) -> tuple[Prediction, State]:
        """Smooths one frame; `gap` is the number of source frames since the previous call (1: none was dropped).

        `motion` is the motion since the previous call, at the size of maps (B, K, h, w); None: nothing moved.
        """
        if isinstance(gap, int) and gap < 1:
            raise ValueError(f"the frame gap must be 1 or more, got {gap}")
        state = self.start(now) if state is None else state
        if isinstance(state, RecursionState) != (self.window is None):
            raise ValueError("the state is that of the other rule (recursion or window); start anew with None")
        if isinstance(state, RecursionState):
            return smooth_recursive(now, warp_state(state, motion) if motion else state, self.tau, gap)
        return smooth_window(now, state, self.tau, gap)


def forget(state: State, reset: Tensor) -> State:
    """The state itself if `reset` (a scalar) is 0, the initial state if it is 1; only the weights are set to 0."""
    return state._replace(**{state._fields[2]: state[2] * (1.0 - reset)})


def smooth_recursive(
    now: Prediction, state: RecursionState, tau: float, gap: int | Tensor = 1
) -> tuple[Prediction, RecursionState]:
    """One step of the recursion: mass = 1 + d mass; mean += (now - mean) / mass, with d = exp(-gap / tau) (Eq. 12-13).
    The first frame is taken unchanged."""
    decay = torch.exp(-gap / tau) if isinstance(gap, Tensor) else math.exp(-gap / tau)
    mass = 1.0 + decay * state.mass
    weight = 1.0 / mass
    mean = Prediction(
        torch.lerp(state.probs, now.probs, _over(weight, now.probs)),
        torch.lerp(state.member_entropy, now.member_entropy, _over(weight, now.member_entropy)),
    )
    return mean, RecursionState(mean.probs, mean.member_entropy, mass)


def warp_state(state: RecursionState, motion: Motion) -> RecursionState:
    """The mean warped along the motion; its weights fall where the motion cannot be trusted."""
    planes = torch.cat([state.probs, state.member_entropy[:, None], state.mass[:, None]], dim=1)
    warped = warp(planes, motion)
    trust = torch.as_tensor(motion.trust).to(warped.device)
    return RecursionState(warped[:, :-2], warped[:, -2], warped[:, -1] * trust)


def smooth_window(
    now: Prediction, state: WindowState, tau: float, gap: int | Tensor = 1
) -> tuple[Prediction, WindowState]:
    """The exact weighted mean of this frame and the earlier ones that are at most n source frames old, where n is the
    number of predictions in the state (Eq. 9-10)."""
    slots = state.ages.shape[0]
    ages = torch.where(state.ages > 0, state.ages + gap, state.ages)  # now counted from the new frame, still plus one
    seen = (ages > 0) & (ages <= slots + 1)
    weights = torch.where(seen, torch.exp((1.0 - ages) / tau), torch.zeros_like(ages))
    share = 1.0 / (1.0 + weights.sum())
    mean = Prediction(
        (now.probs + torch.tensordot(weights, state.probs, dims=1)) * share,
        (now.member_entropy + torch.tensordot(weights, state.member_entropy, dims=1)) * share,
    )
    if slots == 0:
        return mean, state
    return mean, WindowState(
        torch.cat([now.probs[None], state.probs[:-1]]),
        torch.cat([now.member_entropy[None], state.member_entropy[:-1]]),
        torch.cat([torch.ones_like(ages[:1]), ages[:-1]]),
    )


def _over(weight: Tensor, like: Tensor) -> Tensor:
    """Reshapes a weight (B,) or (B, ...) so that it broadcasts over `like`, (B, ...) or (B, K, ...)."""
    if weight.ndim == 1:
        return weight.reshape(-1, *[1] * (like.ndim - 1))
    return weight if weight.ndim == like.ndim else weight.unsqueeze(1)
