"""The CPU backend: OpenVINO or ONNX Runtime runs the network, and one fused kernel computes all that follows."""

import time
from collections.abc import Callable, Iterator
from functools import cache

import numpy as np

from steadyseg.core.classes import ClassList
from steadyseg.core.frame import FrameScores, Maps
from steadyseg.core.method import Method
from steadyseg.core.motion import Motion
from steadyseg.core.reference import ReferenceScores
from steadyseg.core.stage_clock import StageClock
from steadyseg.runtime.kernels.postprocess import FusedPostprocess
from steadyseg.runtime.kernels.resize import nearest, resize_frame
from steadyseg.runtime.networks import FrameNetwork

OpenNetwork = Callable[[int, int], FrameNetwork]
"""(h, w) -> the network compiled for that size."""


class CpuBackend:
    """A network that is compiled for the size of the first frame, and the kernel that holds the state.

    See `core.segmenter.Backend`.
    """

    device = "cpu"

    def __init__(
        self,
        name: str,
        open_network: OpenNetwork,
        size_rule: Callable[[int, int], tuple[int, int]],
        classes: ClassList,
        method: Method,
        size: tuple[int, int],
        *,
        head_stride: int,
        keep_probs: bool = False,
        reference: ReferenceScores | None = None,
        why: str = "",
    ) -> None:
        """size_rule: a frame's (H, W) -> the network's (h, w), once for each size; size: the network's own (h, w)."""
        self.name, self.classes, self.method, self.size = name, classes, method, size
        self.keep_probs, self.reference, self.why = keep_probs, reference, why
        self.clock = StageClock()
        self._postprocess = FusedPostprocess(
            len(classes),
            temperature=method.temperature,
            tau=method.tau,
            samples=method.samples,
            stride=head_stride,
            motion=method.motion,
            gated=method.gated,
            geometric=method.average == "geometric",
        )
        self.head_stride, self._open, self._size_rule = head_stride, open_network, cache(size_rule)
        self._compiled: tuple[int, int] | None = None
        self._scores: FrameScores | None = None

    def state_size(self, height: int, width: int) -> tuple[int, int]:
        height, width = (-(-length // self.head_stride) for length in self._size_rule(height, width))
        return height, width

    def compute(self, image: np.ndarray, gap: int, motion: Motion | None) -> tuple[Maps, FrameScores | None]:
        height, width = image.shape[:2]
        size = self._size_rule(height, width)
        with self.clock.measure("preprocess"):
            picture = resize_frame(image, size)
        if size != self._compiled:
            self._compiled, self._network = size, self._open(*size)
        with self.clock.measure("smoothing"):
            if not gap:
                self._postprocess.reset()
            maps = self._postprocess(self._passes(picture), size, max(gap, 1), motion)
            with self.clock.measure("resize"):
                label, confidence, entropy, disagreement = (
                    resize_map(values, (height, width), is_label=values is maps.label) for values in maps
                )
            probs = self._postprocess.probs if self.keep_probs else None
            return Maps(label, confidence, entropy, disagreement, probs), self._scores

    def _passes(self, picture: np.ndarray) -> Iterator[np.ndarray]:
        """Yields the logits of each dropout pass when the kernel asks for them: passes share a buffer.

        After the last pass, `_scores` is the mean over the passes.
        """
        seconds, passes = 0.0, self._network.passes(picture, self.method.samples)
        for number in range(self.method.samples):
            started = time.perf_counter()
            logits = next(passes)
            seconds += time.perf_counter() - started
            scores = self._network.scores
            mean = self._scores
            self._scores = mean.blend(scores, 1 / (number + 1)) if number and scores and mean else scores
            yield logits
        self.clock.add("network", seconds * 1e3)


def resize_map(values: np.ndarray, size: tuple[int, int], *, is_label: bool) -> np.ndarray:
    """(h, w) uint8 -> (H, W): labels by nearest neighbour, shades bilinearly, as the streaming module does."""
    import cv2

    if values.shape == size:
        return values
    if is_label:
        return nearest(values, size)
    return cv2.resize(values, size[::-1], interpolation=cv2.INTER_LINEAR)
