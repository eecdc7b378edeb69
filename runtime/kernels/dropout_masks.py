"""Dropout masks drawn on the CPU for networks that take them as inputs, from a hundred times fewer random numbers than
elements.

The rule is the same as in `core.dropout.export_mask`: an element's byte is `a[c, y] ^ b[y, x] ^ d[c, x]` of three
planes of uniform bytes. It is uniform and independent of the byte of any other element.
"""

from collections.abc import Sequence

import numpy as np
from numba import types

from steadyseg.runtime.kernels.update import compile_kernel, loop

PLANE = types.Array(types.uint8, 2, "C", readonly=True)


@loop
def _row(line, across, one, threshold, out):  # type: ignore[no-untyped-def]
    for x in range(out.size):
        out[x] = ((line[x] ^ across[x]) ^ one) >= threshold


def _fill(a, b, d, threshold, out):  # type: ignore[no-untyped-def]
    """a (C, H), b (H, W), d (C, W) -> out (C, H, W): 1 where the element is kept."""
    for c in range(out.shape[0]):
        for y in range(out.shape[1]):
            _row(b[y], d[c], a[c, y], threshold, out[c, y])


class DropoutMasks:
    """Masks of given shapes, uint8 0 or 1, which every call redraws in the same arrays."""

    def __init__(self, shapes: Sequence[tuple[int, ...]], rates: Sequence[float], seed: int = 0) -> None:
        """shapes: (1, C, H, W) of the feature maps; rates: the shares that are dropped, rounded to 1/256."""
        self._generator = np.random.Generator(np.random.SFC64(seed))
        self._thresholds = [np.uint8(round(256 * rate)) for rate in rates]
        self._masks = [np.empty(shape, np.uint8) for shape in shapes]
        self._kernel = compile_kernel(_fill, (PLANE, PLANE, PLANE, types.uint8, types.Array(types.uint8, 3, "C")))

    def draw(self) -> list[np.ndarray]:
        """Returns a mask of each shape."""
        for threshold, mask in zip(self._thresholds, self._masks, strict=True):
            channels, height, width = mask.shape[1:]
            self._kernel(
                self._plane(channels, height),
                self._plane(height, width),
                self._plane(channels, width),
                threshold,
                mask[0],
            )
        return self._masks

    def _plane(self, rows: int, columns: int) -> np.ndarray:
        return np.frombuffer(self._generator.bytes(rows * columns), np.uint8).reshape(rows, columns)
