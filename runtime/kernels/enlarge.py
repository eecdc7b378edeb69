"""Label and confidence at full size from the mean of a half-size head, without storing the enlarged probabilities;
importing this needs numba."""

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
from numba import types

from steadyseg.runtime.kernels.update import COUNTER, compile_kernel, loop, take

F, I32 = np.float32, np.int32


@loop
def _blend_rows(near: Any, far: Any, unit: Any, shift: Any, out: Any) -> None:
    """3 near + far in fixed point times 2^shift: (w,), (w,) -> (w + 2,), both ends repeated."""
    for x in range(near.size):
        out[x + 1] = I32((F(3.0) * F(near[x]) + F(far[x])) * unit + F(0.5)) << shift
    out[0], out[near.size + 1] = out[1], out[near.size]


@loop
def _compete(row: Any, tag: Any, even: Any, odd: Any) -> None:
    """Keeps the largest value * 256 + tag: value and class in one integer below 2^28; of equal values the first
    stays."""
    for x in range(even.size):
        centre = I32(3) * row[x + 1] + tag
        even[x] = max(even[x], centre + row[x])
        odd[x] = max(odd[x], centre + row[x + 2])


@loop
def _split(keys: Any, label: Any, confidence: Any) -> None:
    scale = F(255.0 / (16 * 65535))
    for x in range(keys.size):
        label[x] = I32(255) - (keys[x] & I32(255))
        confidence[x] = I32(F(keys[x] >> I32(8)) * scale + F(0.5))


@loop
def _shade(row: Any, even: Any, odd: Any) -> None:
    for x in range(even.size):
        even[x] = (I32(3) * row[x + 1] + row[x] + I32(8)) >> I32(4)
        odd[x] = (I32(3) * row[x + 1] + row[x + 2] + I32(8)) >> I32(4)


@loop
def _interleave(even: Any, odd: Any, out: Any) -> None:
    pairs = out.size // 2
    for x in range(pairs):
        out[2 * x] = even[x]
        out[2 * x + 1] = odd[x]
    if out.size % 2:
        out[2 * pairs] = even[pairs]


def _enlarge(counter: Any, state: Any, coding: Any, coarse: Any, fine: Any) -> None:
    """Enlarges state (K, h, w) and 2 coarse maps (h, w) uint8 to 4 fine maps (H, W), row by row. A fine side is twice
    the coarse side, or one less.

    Bilinear with half-pixel centres: weights 1/4 and 3/4, so sums of 16 x 65535 hold every value exactly.
    """
    classes, height, width = state.shape
    unit = F(65535) / coding[0]
    row = np.empty(width + 2, np.int32)
    keys = np.empty((2, width), np.int32)
    pairs = np.empty((4, 2, width), np.uint8)  # the even and the odd columns of each map
    while True:
        y = take(counter)
        if y >= fine[0].shape[0]:
            break
        near = y // 2
        far = min(max(near - 1 + 2 * (y % 2), 0), height - 1)
        keys[:] = 0
        for c in range(classes):
            _blend_rows(state[c, near], state[c, far], unit, I32(8), row)
            _compete(row, I32(255 - c), keys[0], keys[1])
        for side in range(2):
            _split(keys[side], pairs[0, side], pairs[1, side])
        for i in range(2):
            _blend_rows(coarse[i][near], coarse[i][far], F(1.0), I32(0), row)
            _shade(row, pairs[2 + i, 0], pairs[2 + i, 1])
        for i in range(4):
            _interleave(pairs[i, 0], pairs[i, 1], fine[i][y])


@functools.cache
def enlarge_kernel(state_type: str) -> Callable[..., None]:
    """`_enlarge` for a state of "uint16" or "float32"; compiled here, or read from disk."""
    plane, state = types.Array(types.uint8, 2, "C"), types.Array(getattr(types, state_type), 3, "C")
    return compile_kernel(
        _enlarge, (COUNTER, state, types.UniTuple(types.float32, 2), types.UniTuple(plane, 2), types.UniTuple(plane, 4))
    )
