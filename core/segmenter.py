"""The seam between the stream and whatever computes: one frame in, its maps out, state inside."""

from abc import ABC, abstractmethod
from collections import Counter
from typing import Any, Protocol

import numpy as np

from core.classes import ClassList
from core.continuity import Continuity
from core.frame import Frame, Maps
from core.method import Method
from core.motion import Motion, MotionEstimator
from core.timing import StageClock


class Segmenter(Protocol):
    """What torch, ONNX Runtime and OpenVINO executors look like to the rest; tests have a fake."""

    classes: ClassList
    method: Method
    size: tuple[int, int]
    """(h, w) in pixels at which the network was trained and measured; a graph file works at no other."""
    executor: str
    """What really computes, for the report: `torch fp32`, `openvino 2026.4 bf16`, ..."""
    why: str
    """Why this executor, for the report."""
    device: str
    """Where it really computes: `cpu`, `cuda`."""
    clock: StageClock
    resets: Counter[str]
    """How often the temporal state was started anew, by cause."""
    keep_probs: bool
    """Whether maps come with the mean probabilities, which costs a copy of a few MB."""

    def step(self, frame: Frame) -> Maps:
        """Segments one frame; frames come in the order of their index."""
        ...

    def reset(self) -> None:
        """Forgets all earlier frames."""
        ...


class StagedSegmenter(ABC):
    """The order of a frame's stages, for every executor: preprocess, network, temporal mean, maps."""

    why = ""

    def __init__(self, classes: ClassList, method: Method, size: tuple[int, int], *, keep_probs: bool) -> None:
        self.classes, self.method, self.size, self.keep_probs = classes, method, size, keep_probs
        self.clock = StageClock()
        self._continuity, self._estimate_motion = Continuity(), MotionEstimator()
        self.resets = self._continuity.resets

    def reset(self) -> None:
        """Forgets all earlier frames."""
        self._continuity.forget()

    def step(self, frame: Frame) -> Maps:
        """Segments one frame; see `Maps` for what comes out."""
        gap = self._continuity.follow(frame)
        height, width = frame.image.shape[:2]
        with self.clock.measure("preprocess"):
            picture = self.preprocess(frame.image)
        passes = self.predict(picture)
        with self.clock.measure("smoothing"):
            motion = (
                self._estimate_motion(frame.image, self.state_size(height, width), gap) if self.method.motion else None
            )
            return self.finish(passes, (height, width), gap, motion)

    @abstractmethod
    def preprocess(self, image: np.ndarray) -> Any:
        """(H, W, 3) uint8 RGB -> what the network takes."""

    @abstractmethod
    def predict(self, picture: Any) -> Any:
        """What the network says of this frame alone. It adds its time to the clock as `network`."""

    @abstractmethod
    def state_size(self, height: int, width: int) -> tuple[int, int]:
        """(h, w) of the temporal mean of frames of H x W, at which motion is estimated."""

    @abstractmethod
    def finish(self, passes: Any, size: tuple[int, int], gap: int, motion: Motion | None) -> Maps:
        """The temporal mean and the maps at the frame's size (H, W). `gap`: source frames since the last one, 0: none."""
