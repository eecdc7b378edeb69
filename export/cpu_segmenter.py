"""The CPU executor: OpenVINO or ONNX Runtime runs the network, one fused kernel does everything after it."""

import time
from collections.abc import Callable, Iterator

import numpy as np
import torch

from core.classes import ClassList
from core.continuity import Continuity
from core.frame import Frame, Maps
from core.motion import Motion, MotionEstimator
from core.preprocess import nearest, resize
from core.segmenter import Method
from core.timing import StageClock
from export.kernels.postprocess import FusedPostprocess
from export.networks import FrameNetwork

OpenNetwork = Callable[[int, int], FrameNetwork]
"""(h, w) -> the network compiled for that size."""
SizeRule = Callable[[int, int], tuple[int, int]]
"""A frame's (H, W) -> the network's (h, w)."""


class CpuSegmenter:
    """A `Segmenter` (core/segmenter.py) on the CPU."""

    device = "cpu"

    def __init__(
        self,
        executor: str,
        open_network: OpenNetwork,
        size_rule: SizeRule,
        classes: ClassList,
        method: Method,
        *,
        temperature: float,
        head_stride: int,
        keep_probs: bool = False,
    ) -> None:
        self.classes, self.method, self.keep_probs = classes, method, keep_probs
        self._maps = FusedPostprocess(
            len(classes), temperature=temperature, tau=method.tau, samples=method.samples, stride=head_stride,
            motion=method.motion,
        )  # fmt: skip
        self._head_stride = head_stride
        self._estimate_motion = MotionEstimator()
        self._open, self._size_rule = open_network, size_rule
        self.executor = executor
        self._size: tuple[int, int] | None = None  # the network is compiled when the first frame tells its size
        self.clock = StageClock()
        self._continuity = Continuity()
        self.resets = self._continuity.resets

    def reset(self) -> None:
        """Forgets all earlier frames."""
        self._continuity.forget()
        self._maps.reset()
        self._estimate_motion.forget()

    def step(self, frame: Frame) -> Maps:
        """Segments one frame; see `Maps` for what comes out."""
        gap = self._continuity.follow(frame)
        height, width = frame.image.shape[:2]
        size = self._size_rule(height, width)
        if not gap:
            self._maps.reset()
        if size != self._size:
            self._size, self._network = size, self._open(*size)
        with self.clock.measure("preprocess"):
            picture = resize_frame(frame.image, size)
        started = time.perf_counter()
        motion = self._motion(frame, size, gap)
        spent: list[float] = []
        maps = self._maps(self._passes(picture, spent), size, max(gap, 1), motion)
        label, confidence, entropy, disagreement = (
            resize_map(one, (height, width), is_label=one is maps.label) for one in maps
        )
        self.clock.add("network", sum(spent) * 1e3)
        self.clock.add("smoothing", (time.perf_counter() - started - sum(spent)) * 1e3)
        return Maps(label, confidence, entropy, disagreement, self._maps.probs if self.keep_probs else None)

    def _motion(self, frame: Frame, size: tuple[int, int], gap: int) -> Motion | None:
        if not self.method.motion:
            return None
        height, width = (-(-length // self._head_stride) for length in size)
        return self._estimate_motion(frame.image, (height, width), gap)

    def _passes(self, picture: np.ndarray, spent: list[float]) -> Iterator[np.ndarray]:
        """The logits of each dropout pass; `spent` gets the seconds it took."""
        for _ in range(self.method.samples):
            before = time.perf_counter()
            logits = self._network(picture)
            spent.append(time.perf_counter() - before)
            yield logits


def resize_frame(image: np.ndarray, size: tuple[int, int]) -> np.ndarray:
    """(H, W, 3) uint8 -> (1, h, w, 3) uint8 by the product's own resize."""
    if image.shape[:2] == size:
        return np.ascontiguousarray(image)[None]
    pixels = torch.from_numpy(np.require(image, requirements=["C", "W"]))[None].permute(0, 3, 1, 2)
    return np.ascontiguousarray(resize(pixels, size).permute(0, 2, 3, 1).numpy())


def resize_map(values: np.ndarray, size: tuple[int, int], *, is_label: bool) -> np.ndarray:
    """(h, w) uint8 -> (H, W): labels by nearest neighbour, shades bilinearly, as the streaming module does."""
    if values.shape == size:
        return values
    if is_label:
        return nearest(torch.from_numpy(values)[None], size)[0].numpy()
    import cv2

    return cv2.resize(values, size[::-1], interpolation=cv2.INTER_LINEAR)
