"""The CPU executor: OpenVINO or ONNX Runtime runs the network, one fused kernel does everything after it."""

import time
from collections.abc import Callable, Iterator

import numpy as np
import torch

from core.classes import ClassList
from core.frame import Maps
from core.method import Method
from core.motion import Motion
from core.preprocess import nearest, resize
from core.reference import ReferenceScores
from core.segmenter import StagedSegmenter
from export.kernels.postprocess import FusedPostprocess
from export.run.networks import FrameNetwork, NoveltyArrays

OpenNetwork = Callable[[int, int], FrameNetwork]
"""(h, w) -> the network compiled for that size."""
SizeRule = Callable[[int, int], tuple[int, int]]
"""A frame's (H, W) -> the network's (h, w)."""


class CpuSegmenter(StagedSegmenter):
    """A network that is compiled when the first frame tells its size, and the kernel that holds the state."""

    device = "cpu"

    def __init__(
        self,
        executor: str,
        open_network: OpenNetwork,
        size_rule: SizeRule,
        classes: ClassList,
        method: Method,
        size: tuple[int, int],
        *,
        head_stride: int,
        keep_probs: bool = False,
        own_world: ReferenceScores | None = None,
    ) -> None:
        super().__init__(classes, method, size, keep_probs=keep_probs, own_world=own_world)
        self._postprocess = FusedPostprocess(
            len(classes),
            temperature=method.temperature,
            tau=method.tau,
            samples=method.samples,
            stride=head_stride,
            motion=method.motion,
        )
        self._head_stride, self._open, self._size_rule, self.executor = head_stride, open_network, size_rule, executor
        self._compiled: tuple[int, int] | None = None
        self._sight: NoveltyArrays | None = None

    def preprocess(self, image: np.ndarray) -> np.ndarray:
        return resize_frame(image, self._size_rule(*image.shape[:2]))

    def predict(self, picture: np.ndarray) -> Iterator[np.ndarray]:
        """The logits of each dropout pass, computed when the kernel asks for them: passes share a buffer."""
        size = picture.shape[1], picture.shape[2]
        if size != self._compiled:
            self._compiled, self._network = size, self._open(*size)
        return self._passes(picture)

    def state_size(self, height: int, width: int) -> tuple[int, int]:
        height, width = (-(-length // self._head_stride) for length in self._size_rule(height, width))
        return height, width

    def finish(self, passes: Iterator[np.ndarray], size: tuple[int, int], gap: int, motion: Motion | None) -> Maps:
        if not gap:
            self._postprocess.reset()
        maps = self._postprocess(passes, self._size_rule(*size), max(gap, 1), motion)
        label, confidence, entropy, disagreement = (resize_map(one, size, is_label=one is maps.label) for one in maps)
        probs = self._postprocess.probs if self.keep_probs else None
        plain, sight = Maps(label, confidence, entropy, disagreement, probs), self._sight
        return plain if sight is None else self.add_novelty(plain, sight.score, sight.regions, gap)

    def _passes(self, picture: np.ndarray) -> Iterator[np.ndarray]:
        """The mean of what they say of the whole frame is `_sight` after the last."""
        seconds, passes = 0.0, self._network.passes(picture, self.method.samples)
        for number in range(self.method.samples):
            started = time.perf_counter()
            logits = next(passes)
            seconds += time.perf_counter() - started
            sight = self._network.sight
            if sight and self.method.adaptive:
                self._postprocess.temperature = sight.temperature
            self._sight = self._sight.blend(sight, 1 / (number + 1)) if number and sight and self._sight else sight
            yield logits
        self.clock.add("network", seconds * 1e3)


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
