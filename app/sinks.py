"""Where rendered pictures go: what a sink is, and the ones there are."""

from types import TracebackType
from typing import Protocol, Self

import numpy as np

from app.mask_sink import MaskSink
from app.video_sink import VideoSink

__all__ = ["MaskSink", "NullSink", "Sink", "VideoSink"]


class Sink(Protocol):
    """Takes pictures inside `with`; leaving it, by an exception too, finishes what was begun."""

    @property
    def notes(self) -> tuple[str, ...]:
        """What was changed on the way, in words."""
        ...

    def write(self, image: np.ndarray, time_s: float) -> None:
        """Takes an (H, W, 3) uint8 RGB picture and its time in seconds from the start."""
        ...

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...


class NullSink:
    """Takes everything, keeps nothing."""

    notes: tuple[str, ...] = ()

    def write(self, image: np.ndarray, time_s: float) -> None:
        """Drops it."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...
