"""Temporal smoothing: an exponentially weighted mean of the recent frames' predictions (VQ-BNN, arXiv 1907.05911).

The prediction t source frames back weighs exp(-t / tau). Softmax comes first, then the mean. State is explicit:
functions take it and return the next one; None, or zeros, starts anew. Shapes never change, so that a graph can carry
the state.

Beyond the paper, the mean can follow the motion: it is warped along the optical flow between the frames. The past
weighs less where a pixel looks unlike its earlier position (`core/motion.py`). A gate lets the past also weigh less
where it predicts another class than the new frame. So objects that the flow loses do not smear.

The mean may also be geometric: of log probabilities, normalised again. An arithmetic mean of calibrated predictions is
less confident than it is right; a geometric one keeps their confidence (docs/records/results).

A frame whose prediction is NaN is left out: the past is warped and ages, as for a dropped frame.
"""

import math
from dataclasses import dataclass, replace
from typing import NamedTuple

import torch
from torch import Tensor

from steadyseg.core.errors import InputError
from steadyseg.core.method import GATE_FLOOR, SMALLEST_PROB, Method
from steadyseg.core.motion import Motion, warp
from steadyseg.core.prediction import Prediction, entropy

GATE_SQUARINGS = 4
"""Probabilities are raised to the power 2^4 before mean and frame are compared (docs/records/gating)."""
SMALLEST_RATIO = 0.1
"""Ratios to the largest probability are cut off here: their 16th power is 1e-16, and no sum has denormal numbers."""


class State(NamedTuple):
    """The running mean over all frames so far; all zeros is the start."""

    probs: Tensor
    """(B, K, ...)"""
    member_entropy: Tensor
    """(B, ...); of a geometric mean the divergence of its frames, sum of weight_t KL(mean || p_t)."""
    mass: Tensor
    """(B, 1), or (B, h, w) where the mean follows motion: sum of the weights. At most 1 / (1 - exp(-1 / tau)); 0 before
    the first frame."""


@dataclass(frozen=True)
class TemporalSmoothing:
    """The averaging rule: a recursion over all frames, which may follow motion.

    The paper averages over the K = 5 frames before this frame. The recursion is the limit of large K, and differs from
    the paper's mean by e^(-(K+1)/tau) of its mass (docs/explanation/methods.md).
    """

    tau: float = 1.25
    """Decay time in source frames (published: 1.25, that is e^-0.8 per frame)."""
    motion: bool = False
    """Warp the mean along the motion between frames before the new frame is added."""
    gated: bool = False
    """Let the past weigh less where it predicts another class (`keep_alike`); needs `motion`, whose weights are by
    pixel."""
    geometric: bool = False
    """Average log probabilities and not probabilities."""

    def __post_init__(self) -> None:
        if not (self.tau > 0 and math.isfinite(self.tau)):
            raise InputError(f"tau must be a positive number of frames, got {self.tau}")

    def start(self, like: Prediction) -> State:
        """The state before the first frame: zeros of the prediction's shape."""
        shape = like.member_entropy.shape if self.motion else (like.probs.shape[0], 1)
        mass = like.probs.new_zeros(shape)
        return State(torch.zeros_like(like.probs), torch.zeros_like(like.member_entropy), mass)

    def __call__(
        self, now: Prediction, state: State | None, gap: int | Tensor = 1, motion: Motion | None = None
    ) -> tuple[Prediction, State]:
        """Smooths one frame of each of B streams.

        `gap` is the number of source frames since the previous call (1: none was dropped); a tensor (B, 1) has one gap
        a stream. `motion` is the motion since the previous call, at the size of maps (B, K, h, w); None if nothing
        moved.
        """
        if isinstance(gap, int) and gap < 1:
            raise ValueError(f"the frame gap must be 1 or more, got {gap}")
        state = self.start(now) if state is None else state
        if self.geometric:
            state = state._replace(probs=_logs(state.probs))
        state = warp_state(state, motion) if motion else state
        past = keep_alike(now, state) if self.gated and self.motion else state
        step = smooth_geometric if self.geometric else smooth_recursive
        _, after = step(now, past, self.tau, gap)
        finite = now.is_finite()
        if self.geometric:
            state = state._replace(probs=state.probs.exp())
        after = _where(finite, after, state._replace(mass=_decay(self.tau, gap, state.mass) * state.mass))
        mean = divergent(after) if self.geometric else Prediction(after.probs, after.member_entropy)
        return replace(mean, finite=finite), after


def smoothing_of(method: Method) -> TemporalSmoothing | None:
    """The rule of a method; None for a method without a temporal mean."""
    return (
        None
        if method.tau is None
        else TemporalSmoothing(method.tau, method.motion, method.gated, method.average == "geometric")
    )


def forget(state: State, reset: Tensor) -> State:
    """The state in which each stream with a `reset` (B, 1) of 1, and not 0, starts anew: its mass is set to 0."""
    return state._replace(mass=state.mass * _over(1.0 - reset, state.mass))


def smooth_recursive(now: Prediction, state: State, tau: float, gap: int | Tensor = 1) -> tuple[Prediction, State]:
    """One step of the recursion: mass = 1 + d mass; mean += (now - mean) / mass, with d = exp(-gap / tau) (Eq. 12-13).
    The first frame is taken unchanged."""
    mass = 1.0 + _decay(tau, gap, state.mass) * state.mass
    weight = 1.0 / mass
    mean = Prediction(
        torch.lerp(state.probs, now.probs, _over(weight, now.probs)),
        torch.lerp(state.member_entropy, now.member_entropy, _over(weight, now.member_entropy)),
    )
    return mean, State(mean.probs, mean.member_entropy, mass)


def smooth_geometric(now: Prediction, state: State, tau: float, gap: int | Tensor = 1) -> tuple[Prediction, State]:
    """One step of the recursion of log probabilities, with the mass of `smooth_recursive`; `state` has logarithms.

    The mean g = p^w g'^(1 - w) / z of frame p and past g' is normalised by z <= 1. The divergence of its frames,
    sum of weight_t KL(g || p_t), which is 0 if they agree, becomes (1 - w) divergence' - log z.
    """
    mass = 1.0 + _decay(tau, gap, state.mass) * state.mass
    weight = 1.0 / mass
    mixed = torch.lerp(state.probs, _logs(now.probs), _over(weight, now.probs))
    log_z = torch.logsumexp(mixed, 1, keepdim=True)
    past = (1.0 - _over(weight, now.member_entropy)) * state.member_entropy
    after = State((mixed - log_z).exp(), past - log_z[:, 0], mass)
    return divergent(after), after


def divergent(state: State) -> Prediction:
    """The prediction of a geometric mean, whose disagreement is the divergence of its frames."""
    return Prediction(state.probs, entropy(state.probs) - state.member_entropy)


def warp_state(state: State, motion: Motion) -> State:
    """The mean warped along the motion; its weights fall where the motion cannot be trusted."""
    planes = torch.cat([state.probs, state.member_entropy[:, None], state.mass[:, None]], dim=1)
    warped = warp(planes, motion)
    trust = torch.as_tensor(motion.trust).to(warped.device)
    return State(warped[:, :-2], warped[:, -2], warped[:, -1] * trust)


def keep_alike(now: Prediction, state: State) -> State:
    """The state with a mass (B, h, w) that falls to `GATE_FLOOR` of itself where the frame predicts another class.

    The share that stays is floor + (1 - floor) cos(p^16, q^16), of the frame's p and the mean's q. It is continuous:
    near a tie of two classes rounding moves it little, so that all backends agree.
    """
    frame, past = _sharpen(now.probs), _sharpen(state.probs)
    length = ((frame * frame).sum(1) * (past * past).sum(1)).sqrt()
    share = GATE_FLOOR + (1.0 - GATE_FLOOR) * (frame * past).sum(1) / length
    return state._replace(mass=state.mass * share)


def _logs(probs: Tensor) -> Tensor:
    return probs.clamp_min(SMALLEST_PROB).log()


def _sharpen(probs: Tensor) -> Tensor:
    """(p / max p)^16 over the classes; all zeros, the start, become small."""
    ratio = (probs / probs.amax(1, keepdim=True).clamp_min(1e-6)).clamp_min(SMALLEST_RATIO)
    for _ in range(GATE_SQUARINGS):
        ratio = ratio * ratio
    return ratio


def _decay(tau: float, gap: int | Tensor, mass: Tensor) -> float | Tensor:
    return _over(torch.exp(-gap / tau), mass) if isinstance(gap, Tensor) else math.exp(-gap / tau)


def _where(chosen: Tensor, one: State, other: State) -> State:
    """Chooses the state of each stream by `chosen` (B, 1); a product with 0 would keep NaN."""
    return State(*(torch.where(_over(chosen, a), a, b) for a, b in zip(one, other, strict=True)))


def _over(weight: Tensor, like: Tensor) -> Tensor:
    """Reshapes a weight (B, 1) or (B, h, w) so that it broadcasts over `like`, (B, ...) or (B, K, ...)."""
    if weight.ndim == 2:
        return weight.reshape(-1, *[1] * (like.ndim - 1))
    return weight if weight.ndim == like.ndim else weight.unsqueeze(1)
