"""Maps between two network calls: the last call's mean, warped along the motion to the newest frame.

Where a pixel looks unlike its earlier position, or came from outside the picture, it loses confidence towards equal
probabilities, so that the uncertainty map shows it and the label stays.
"""

import functools
import math

import numpy as np

from steadyseg.core.motion import Motion, warp_plane
from steadyseg.core.system.machine import available_cpus
from steadyseg.runtime.kernels.enlarge import enlarge_kernel
from steadyseg.runtime.kernels.postprocess import BLOCK_BYTES, CODING, PostprocessMaps, share_work
from steadyseg.runtime.kernels.update import carry_kernel

LOSS = 0.08
"""Share of a pixel's probabilities that becomes equal where the motion is not trusted at all; it falls with the square
of the doubt (docs/explanation/methods.md)."""


class CarriedMaps:
    """The mean of one network call, from which the maps of later frames are made. One thread at a time may use it."""

    def __init__(self, probs: np.ndarray, disagreement: np.ndarray, stride: int) -> None:
        """`probs` (K, h, w) float32, `disagreement` (h, w) uint8; `stride`: 1 or 2, maps have so many pixels for one of
        the mean."""
        self._levels = (probs * CODING[0] + CODING[1]).astype(np.uint16)
        self._disagreement, self._stride = disagreement, stride
        self._carry, self._enlarge = carry_kernel(), enlarge_kernel("uint16") if stride == 2 else None
        self.probs = probs

    def __call__(self, motion: Motion, keep_probs: bool = False) -> PostprocessMaps:
        """The maps (s h, s w) after a motion since the network call. `keep_probs`: `self.probs` follows too."""
        classes, height, width = self._levels.shape
        pixels, threads = height * width, _threads()
        levels = np.empty((classes, height, width), np.uint16)
        for plane, warped in zip(self._levels, levels, strict=True):
            warped[:] = warp_plane(plane, motion.source)
        lost = np.float32(LOSS) * np.square(np.float32(1) - motion.trust)
        coarse = [np.empty((height, width), np.uint8) for _ in range(4)]
        block = max(64, BLOCK_BYTES // (4 * classes) // 64 * 64)
        planes, maps = levels.reshape(classes, pixels), tuple(one.reshape(pixels) for one in coarse)
        scale = np.float32(255.0 / math.log(classes))
        share_work(threads, -(-pixels // block), self._carry, planes, lost.reshape(pixels), block, scale, maps)
        coarse[3] = warp_plane(self._disagreement, motion.source)
        if keep_probs:
            self.probs = levels.astype(np.float32) / CODING[0]
        if self._enlarge is None:
            return PostprocessMaps(*coarse)
        fine = tuple(np.empty((2 * height, 2 * width), np.uint8) for _ in range(4))
        share_work(threads, 2 * height, self._enlarge, levels, CODING, (coarse[2], coarse[3]), fine)
        return PostprocessMaps(*fine)


@functools.cache
def _threads() -> int:
    """Asked for each carried frame: a container's quota is in files."""
    return available_cpus()
