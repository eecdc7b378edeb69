"""Rules of the mean that follows motion, which differ in how much past they keep where the new frame disagrees.

A gate multiplies the mass of the warped mean (`core/temporal.py`), pixel by pixel, before the new frame is added.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import partial

import torch
from torch import Tensor

from steadyseg.core.frame import Frame, Maps
from steadyseg.core.motion import Motion, MotionEstimator
from steadyseg.core.prediction import Prediction
from steadyseg.core.temporal import State, smooth_recursive, warp_state

Gate = Callable[[Tensor, Tensor], Tensor]
"""Probabilities (1, K, h, w) of the new frame and of the warped mean -> the share (1, h, w) of the mass that stays."""


@dataclass(frozen=True)
class Rule:
    """A mean along the motion: its decay time in frames, and its gate."""

    tau: float
    gate: Gate | None = None


def same_class(floor: float, now: Tensor, mean: Tensor) -> Tensor:
    """1 where both have the same arg-max, else `floor`."""
    return torch.where(now.argmax(1) == mean.argmax(1), 1.0, floor)


def likeness(power: int, floor: float, now: Tensor, mean: Tensor) -> Tensor:
    """A continuous form of `same_class`: the cosine between the probabilities raised to a power, from `floor` to 1.

    Near a tie of two classes, rounding moves it little, so that two implementations of it stay close.
    """
    a, b = ((probs / probs.amax(1, keepdim=True)) ** power for probs in (now, mean))
    return floor + (1.0 - floor) * (a * b).sum(1) / ((a * a).sum(1) * (b * b).sum(1)).sqrt()


RULES: dict[str, Rule | None] = {
    "single frames": None,
    "no gate, tau 8": Rule(8.0),
    "other class: 0.3 stays": Rule(8.0, partial(same_class, 0.3)),
    "likeness, power 16, 0.3": Rule(8.0, partial(likeness, 16, 0.3)),
}
"""Single frames (None, without a mean), the mean without a gate, and the chosen gate in both forms."""


def run_rules(single: Iterable[tuple[Frame, Maps]]) -> Iterator[tuple[Frame, dict[str, Maps]]]:
    """Yields each frame with the maps of every rule; only `probs` comes from the rule's mean.

    `single`: the frames, with maps that have the probabilities of the frame alone. A frame marked as a discontinuity
    starts all means anew.
    """
    estimate, states = MotionEstimator(), dict[str, State]()
    for frame, maps in single:
        if frame.discontinuity:
            estimate.forget()
            states.clear()
        assert maps.probs is not None
        probs = torch.from_numpy(maps.probs)[None]
        motion = estimate(frame.image, maps.probs.shape[1:])
        means = {name: step(rule, name, probs, states, motion) for name, rule in RULES.items()}
        yield frame, {name: replace(maps, probs=mean[0].numpy()) for name, mean in means.items()}


def step(rule: Rule | None, name: str, probs: Tensor, states: dict[str, State], motion: Motion | None) -> Tensor:
    """One frame of a rule, whose state lies in `states` under its name."""
    if rule is None:
        return probs
    now = Prediction(probs, torch.zeros_like(probs[:, 0]))
    if name not in states or motion is None:
        states[name] = State(now.probs, now.member_entropy, torch.ones_like(probs[:, 0]))
        return probs
    moved = warp_state(states[name], Motion(motion.source[None], motion.trust[None]))
    if rule.gate:
        moved = moved._replace(mass=moved.mass * rule.gate(probs, moved.probs))
    mean, states[name] = smooth_recursive(now, moved, rule.tau)
    return mean.probs
