"""Motion between neighbouring frames, cheap enough for every frame: where each pixel was, and how far that is to be
believed.

Dense inverse search (Kroeger et al. 2016, arXiv 1603.03590; OpenCV's DIS, 1.5 ms at 480x360 on one core) on grey
pictures of the network's size. Where the found pixel does not look like this one (occluded, come into view, another
scene), the past counts less.
"""

import functools
import importlib
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

STEPS = 32
"""Positions are rounded to 1/32 pixel, which is what OpenCV's remap resolves: so all executors warp alike."""
DOUBT_LEVELS = 20.0
"""Mean grey difference (of 255 levels) at which the past's weight has fallen to 1/e."""
DOUBT_BOX = 5
"""Pixels a side over which the difference is averaged."""


@dataclass(frozen=True, eq=False)
class Motion:
    """From the previous frame to this one."""

    source: np.ndarray
    """(h, w, 2) float32: the position (x, y) in the previous frame of what each pixel shows; outside it the edge is
    meant."""
    trust: np.ndarray
    """(h, w) float32 in 0..1: exp(-(difference / 20)^2)."""


class MotionEstimator:
    """Remembers the last frame of one stream; for one thread at a time."""

    def __init__(self) -> None:
        self._flow: Any = None
        self.forget()

    def forget(self) -> None:
        """The next frame is the first of a stream."""
        self._previous: np.ndarray | None = None

    def __call__(self, image: np.ndarray, size: tuple[int, int], gap: int = 1) -> Motion | None:
        """(H, W, 3) uint8 RGB -> the motion at `size` (h, w) since the last call; None without a last frame of that
        size.

        `gap`: source frames since then; 0 starts anew.
        """
        if not gap:  # as core/continuity says where a stream starts anew
            self.forget()
        now, previous = grey(image, size), self._previous
        self._previous = now
        if previous is None or previous.shape != now.shape:
            return None
        return self._between(previous, now)

    def _between(self, previous: np.ndarray, now: np.ndarray) -> Motion:
        cv2: Any = importlib.import_module("cv2")  # OpenCV's type stubs lack DIS
        if self._flow is None:
            self._flow = cv2.DISOpticalFlow_create(cv2.DISOPTICAL_FLOW_PRESET_ULTRAFAST)
        flow = self._flow.calc(now, previous, None)
        source = flow
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
    """(h, w) uint8, uint16 or float32 of the previous frame -> where its pixels are now: bilinear, the edge
    repeated."""
    from cv2 import BORDER_REPLICATE, INTER_LINEAR, remap

    no_second_map: Any = None  # x and y are one array
    return np.asarray(remap(plane, source, no_second_map, INTER_LINEAR, borderMode=BORDER_REPLICATE))


def warp(maps: Tensor, motion: Motion) -> Tensor:
    """(B, C, h, w) maps of the previous frame -> where their pixels are now: bilinear, the edge repeated."""
    height, width = maps.shape[-2:]
    source = torch.as_tensor(motion.source)
    scale = torch.tensor([2.0 / max(width - 1, 1), 2.0 / max(height - 1, 1)], device=source.device)
    where = (source * scale - 1.0).to(maps.device, maps.dtype)
    return F.grid_sample(maps, where[None].expand(len(maps), -1, -1, -1), padding_mode="border", align_corners=True)


def no_motion(size: tuple[int, int]) -> Motion:
    """Everything is where it was, at `size` (h, w), and believed."""
    return Motion(_grid(*size), np.ones(size, np.float32))


@functools.lru_cache(maxsize=4)
def _grid(height: int, width: int) -> np.ndarray:
    """(h, w, 2) float32: every pixel's own position."""
    return np.stack(np.meshgrid(np.arange(width), np.arange(height)), axis=-1).astype(np.float32)
