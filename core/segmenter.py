"""The seam between the stream and whatever computes: one frame in, its maps out, state inside."""

import dataclasses
import math
from abc import ABC, abstractmethod
from collections import Counter
from typing import Any, Protocol

import numpy as np

from core.classes import ClassList
from core.continuity import Continuity
from core.frame import Frame, Maps
from core.method import Method
from core.motion import Motion, MotionEstimator
from core.reference import ReferenceScores, smooth_score
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
    own_world: ReferenceScores | None
    """What frames are compared with; None: no novelty is told."""
    keep_probs: bool
    """Whether maps come with the mean probabilities, which costs a copy of a few MB."""

    def step(self, frame: Frame) -> Maps:
        """Segments one frame; frames come in the order of their index."""
        ...

    def reset(self) -> None:
        """Forgets all earlier frames."""
        ...


RARE_LEVEL = 128
"""Of 255, where a region is as novel as one pixel in a hundred of the own world."""


class StagedSegmenter(ABC):
    """The order of a frame's stages, for every executor: preprocess, network, temporal mean, maps."""

    why = ""

    def __init__(
        self,
        classes: ClassList,
        method: Method,
        size: tuple[int, int],
        *,
        keep_probs: bool,
        own_world: ReferenceScores | None = None,
    ) -> None:
        """`own_world`: what frames are compared with; None: no novelty is told."""
        self.classes, self.method, self.size, self.keep_probs = classes, method, size, keep_probs
        self.own_world, self._score = own_world, (0.0, 0.0)
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

    def add_novelty(self, maps: Maps, score: float, regions: np.ndarray, gap: int) -> Maps:
        """The maps with what is said of the whole frame. score: of this frame alone; regions: (h', w') as in
        `FrameNovelty`."""
        if self.own_world is None:
            return maps
        tau = self.method.tau
        decay = math.exp(-gap / tau) if gap and tau else 0.0
        self._score = smooth_score(self.own_world.bounded(score), self._score, decay)
        confidence = float(maps.confidence.mean()) / 255
        return dataclasses.replace(
            maps,
            novelty=self.own_world.share(self._score[0]),
            expected_accuracy=confidence if self.method.adaptive else None,
            novel_regions=draw_regions(regions, maps.label.shape),
        )

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
        """The temporal mean and the maps at the frame's size (H, W). `gap`: source frames since the last one, 0:
        none."""


def draw_regions(regions: np.ndarray, size: tuple[int, ...]) -> np.ndarray:
    """(h', w') as in `FrameNovelty` -> (H, W) uint8 as in `Maps.novel_regions`."""
    import cv2

    shades = np.clip(np.nan_to_num(regions * RARE_LEVEL, nan=255.0), 0, 255).astype(np.uint8)
    return np.asarray(cv2.resize(shades, size[::-1], interpolation=cv2.INTER_LINEAR))
