"""The mean over time that a method asks for: of the frames before, or with a lag also of the frames after."""

from typing import Any, Protocol

from steadyseg.core.lag import LaggedSmoothing
from steadyseg.core.method import Method
from steadyseg.core.motion import Motion
from steadyseg.core.prediction import Prediction
from steadyseg.core.temporal import TemporalSmoothing


class Smoothing(Protocol):
    """A rule that averages predictions over time, with a state of its own kind."""

    @property
    def motion(self) -> bool: ...

    def start(self, like: Prediction) -> Any: ...

    def __call__(
        self, now: Prediction, state: Any, gap: Any = 1, motion: Motion | None = None
    ) -> tuple[Prediction, Any]: ...


def smoothing_of(method: Method) -> Smoothing | None:
    """The rule of a method; None for a method without a temporal mean."""
    if method.tau is None:
        return None
    return (
        LaggedSmoothing(method.tau, method.lag)
        if method.lag
        else TemporalSmoothing(method.tau, method.motion, method.gated)
    )
