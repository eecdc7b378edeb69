"""Motion between neighbouring frames: the earlier position of each pixel, and how far it can be trusted.

Dense inverse search (Kroeger et al. 2016, arXiv 1603.03590; OpenCV's DIS, 1.5 ms at 480x360 on one core) on grey
pictures of the network's size. Where the matched pixel looks different (an occlusion, newly visible background, another
scene), the past counts less.
"""

import functools
import importlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from torch import Tensor

STEPS = 32
"""Positions are rounded to 1/32 pixel, the resolution of OpenCV's remap, so that all backends warp alike."""
LEAST_SIDE = 32
"""OpenCV's flow of smaller pictures ends in an error or ends the process; nothing is taken to move there."""
DOUBT_LEVELS = 20.0
"""Mean grey difference, in levels of 255, at which the weight of the past has fallen to 1/e."""
DOUBT_BOX = 5
"""Pixels a side over which the difference is averaged."""


@dataclass(frozen=True, eq=False)
class Motion:
    """The motion from the previous frame to this frame; a graph has tensors here, with the streams as first axis."""

    source: np.ndarray
    """(h, w, 2) float32: for each pixel its position (x, y) in the previous frame; positions outside the picture take
    the value at its edge."""
    trust: np.ndarray
    """(h, w) float32 in 0..1: exp(-(difference / 20)^2), of the grey levels of the pixel and its earlier position."""


class MotionEstimator:
    """Estimates the motion between successive frames of one stream; it remembers the last frame. Not thread-safe."""

    def __init__(self, fine: bool = False) -> None:
        """`fine`: the flow's finest scale is half the picture and not a quarter, at 1 ms more. Maps that are carried
        over several frames lose a quarter less of their labels (val, virtual cameras, drawn streets)."""
        self._flow: Any = None
        self._fine = fine
        self._previous: np.ndarray | None = None

    def __call__(self, image: np.ndarray, size: tuple[int, int], gap: int = 1) -> Motion | None:
        """(H, W, 3) uint8 RGB -> the motion at `size` (h, w) since the last call; None without a last frame of this
        size.

        `gap`: source frames since the last call; 0 starts anew.
        """
        now, previous = grey(image, size), self._previous if gap else None
        self._previous = now
        if previous is None or previous.shape != now.shape:
            return None
        return self._between(previous, now)

    def flow(self, previous: np.ndarray, now: np.ndarray) -> np.ndarray:
        """Two grey pictures (h, w) uint8 -> (h, w, 2) float32: the way (x, y) from each pixel to its earlier place."""
        cv2: Any = importlib.import_module("cv2")  # OpenCV's type stubs lack DIS
        if self._flow is None:
            self._flow = cv2.DISOpticalFlow_create(cv2.DISOPTICAL_FLOW_PRESET_ULTRAFAST)
            if self._fine:
                self._flow.setFinestScale(1)
        small = min(now.shape) < LEAST_SIDE
        return np.zeros((*now.shape, 2), np.float32) if small else self._flow.calc(now, previous, None)

    def _between(self, previous: np.ndarray, now: np.ndarray) -> Motion:
        import cv2

        source = self.flow(previous, now)
        source += _grid(*now.shape)
        source *= np.float32(STEPS)
        np.rint(source, out=source)
        source *= np.float32(1 / STEPS)
        difference = cv2.absdiff(now, warp_plane(previous, source))
        mean = cv2.blur(difference.astype(np.float32), (DOUBT_BOX, DOUBT_BOX))
        return Motion(source, np.exp(-np.square(mean * np.float32(1.0 / DOUBT_LEVELS))))


def grey(image: np.ndarray, size: tuple[int, int]) -> np.ndarray:
    """(H, W, 3) uint8 RGB -> (h, w) uint8."""
    import cv2

    shade = cv2.cvtColor(image, cv2.COLOR_RGB2GRAY)
    return shade if shade.shape == size else cv2.resize(shade, size[::-1], interpolation=cv2.INTER_AREA)


def warp_plane(plane: np.ndarray, source: np.ndarray) -> np.ndarray:
    """(h, w) uint8, uint16 or float32 of the previous frame, warped to this frame: bilinear, the edge repeated."""
    from cv2 import BORDER_REPLICATE, INTER_LINEAR, remap

    no_second_map: Any = None  # x and y are one array
    return np.asarray(remap(plane, source, no_second_map, INTER_LINEAR, borderMode=BORDER_REPLICATE))


def warp(maps: "Tensor", motion: Motion) -> "Tensor":
    """(B, C, h, w) maps of the previous frame, warped to this frame: bilinear, the edge repeated."""
    import torch
    import torch.nn.functional as F

    height, width = maps.shape[-2:]
    source = torch.as_tensor(motion.source)
    scale = torch.tensor([2.0 / max(width - 1, 1), 2.0 / max(height - 1, 1)], device=source.device)
    where = (source * scale - 1.0).to(maps.device, maps.dtype)
    where = where[None].expand(len(maps), -1, -1, -1) if where.ndim == 3 else where
    return F.grid_sample(maps, where, padding_mode="border", align_corners=True)


def compose(first: Motion | None, then: Motion) -> Motion:
    """The motion of two steps, from the frame before `first` (None: no step) to the frame after `then`."""
    if first is None:
        return then
    source = warp_plane(first.source, then.source)
    source += then.source - _clipped(then.source)
    np.rint(source * np.float32(STEPS), out=source)
    return Motion(source * np.float32(1 / STEPS), then.trust * warp_plane(first.trust, then.source))


def inside(source: np.ndarray) -> np.ndarray:
    """(h, w, 2) positions -> (h, w) bool: True where the position lies in the picture."""
    return np.asarray(np.abs(source - _clipped(source)).max(-1) <= 0.5)


def _clipped(source: np.ndarray) -> np.ndarray:
    height, width = source.shape[:2]
    return np.clip(source, 0, np.array([width - 1, height - 1], np.float32))


def no_motion(size: tuple[int, int]) -> Motion:
    """A motion of `size` (h, w) in which every pixel stays where it was, fully trusted."""
    return Motion(_grid(*size), np.ones(size, np.float32))


@functools.lru_cache(maxsize=4)
def _grid(height: int, width: int) -> np.ndarray:
    """(h, w, 2) float32: the position (x, y) of every pixel."""
    return np.stack(np.meshgrid(np.arange(width), np.arange(height)), axis=-1).astype(np.float32)
