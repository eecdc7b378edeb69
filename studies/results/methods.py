"""The compared methods: the passes of a frame, the temperature, and the memory of earlier frames."""

from dataclasses import dataclass
from typing import Any

from steadyseg.core.method import MOTION_TAU
from steadyseg.core.motion import Motion
from steadyseg.core.prediction import Prediction
from steadyseg.core.temporal import TemporalSmoothing
from steadyseg.studies.harness.window import WindowSmoothing

Smoothing = TemporalSmoothing | WindowSmoothing


@dataclass(frozen=True)
class Sampling:
    """Prediction of a frame from the given networks."""

    kind: str
    """one: a pass without dropout; dropout: the mean of `samples` dropout passes; all: every member; member: one
    drawn."""
    samples: int = 1


@dataclass(frozen=True)
class Method:
    """One row's computation."""

    sampling: Sampling
    smoothing: Smoothing | None = None
    temperature: float = 1.0
    undone: bool = False
    """True if the logits are adjusted for the class weights of the training."""

    @property
    def mode(self) -> str:
        """The mode of `steadyseg evaluate` that computes it."""
        name = "bnn" if self.sampling.kind == "dropout" else "dnn"
        return f"vq-{name}" if self.smoothing else name


ONE, ALL, MEMBER = Sampling("one"), Sampling("all"), Sampling("member")
WINDOW = WindowSmoothing(tau=1.25, window=5)
"""Published window: K = 5 previous frames, tau = 1.25."""
MOTION_INPUTS = TemporalSmoothing(tau=MOTION_TAU, motion=True)
"""The default rule: the mean follows the motion."""


class Memory:
    """A method's state along a stream."""

    def __init__(self, smoothing: Smoothing | None) -> None:
        self.smoothing = smoothing
        self.state: Any = None

    def smooth(self, now: Prediction, gap: int, motion: Motion | None) -> Prediction:
        """`gap`: source frames since the last one; 0 starts anew. `motion`: since then, for those that follow it."""
        if self.smoothing is None:
            return now
        followed = motion if self.smoothing.motion else None
        mean, self.state = self.smoothing(now, self.state if gap else None, max(gap, 1), followed)
        return mean
