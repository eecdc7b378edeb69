"""Frames resized without torch, byte for byte as torch resizes them on x86; importing this needs numba.

Torch's antialiased bilinear filter for uint8 (the algorithm of Pillow, with 16-bit weights): columns first, then rows,
each rounded to bytes.
"""

import functools
import math
from typing import Any

import numpy as np
from numba import types

from steadyseg.runtime.kernels.update import compile_kernel, loop

MAX_PRECISION = 22
"""Most bits of a weight's fraction."""
WEIGHT_LIMIT = 1 << 15
TURNED_ROWS = 64
"""Rows of a block that stays in the processor's cache while it is turned."""


def resize_frame(image: np.ndarray, size: tuple[int, int]) -> np.ndarray:
    """(H, W, 3) uint8 -> (1, h, w, 3) uint8."""
    image, (height, width) = np.ascontiguousarray(image), size
    if image.shape[1] != width:
        image = _resize_columns(image, width)
    return (image if len(image) == height else _resize_rows(image, height))[None]


def _resize_columns(image: np.ndarray, width: int) -> np.ndarray:
    """Resizes rows of the transposed image, in blocks: sums along the memory take a third of the time."""
    import cv2

    resized = np.empty((len(image), width, 3), np.uint8)
    for first in range(0, len(image), TURNED_ROWS):
        rows = slice(first, first + TURNED_ROWS)
        cv2.transpose(_resize_rows(cv2.transpose(image[rows]), width), resized[rows])
    return resized


def _resize_rows(image: np.ndarray, height: int) -> np.ndarray:
    rows, width, channels = image.shape
    resized = np.empty((height, width * channels), np.uint8)
    _kernel()(image.reshape(rows, -1), *filter_weights(rows, height), resized)
    return resized.reshape(height, width, channels)


@functools.lru_cache(maxsize=16)
def filter_weights(length: int, wanted: int) -> tuple[np.ndarray, np.ndarray, int]:
    """Returns the first source position (wanted,), the weights (wanted, n) as int32, and the bits of their fraction."""
    scale = length / wanted
    support = max(scale, 1.0)
    firsts = np.zeros(wanted, np.int64)
    shares = np.zeros((wanted, math.ceil(support) * 2 + 1))
    for place in range(wanted):
        centre = scale * (place + 0.5)
        first = max(int(centre - support + 0.5), 0)
        count = min(int(centre + support + 0.5), length) - first
        distances = np.abs((np.arange(count) + first - centre + 0.5) / support)
        triangle = np.maximum(1.0 - distances, 0.0)
        firsts[place], shares[place, :count] = first, triangle / triangle.sum()
    bits = 0
    while bits < MAX_PRECISION and int(0.5 + shares.max() * (1 << (bits + 1))) < WEIGHT_LIMIT:
        bits += 1
    weights = np.floor(0.5 + shares * (1 << bits)).astype(np.int32)
    firsts = np.minimum(firsts, length - 1)
    return firsts, weights, bits


@loop
def _add(weight: Any, row: Any, sums: Any) -> None:
    for x in range(sums.size):
        sums[x] += weight * np.int32(row[x])


@loop
def _round(sums: Any, bits: Any, out: Any) -> None:
    for x in range(sums.size):
        out[x] = min(max(sums[x] >> bits, np.int32(0)), np.int32(255))


def _filter(image: Any, firsts: Any, weights: Any, bits: Any, out: Any) -> None:
    """Sums of the rows of image (H, n) uint8 -> out (h, n) uint8."""
    sums = np.empty(out.shape[1], np.int32)
    for y in range(out.shape[0]):
        sums[:] = np.int32(1) << np.int32(bits - 1)
        for n in range(min(weights.shape[1], image.shape[0] - firsts[y])):
            if weights[y, n]:
                _add(weights[y, n], image[firsts[y] + n], sums)
        _round(sums, np.int32(bits), out[y])


@functools.cache
def _kernel() -> Any:
    read = functools.partial(types.Array, layout="C", readonly=True)
    lines, plan = read(types.uint8, 2), (read(types.int64, 1), read(types.int32, 2), types.int64)
    return compile_kernel(_filter, (lines, *plan, types.Array(types.uint8, 2, "C")))


def nearest(labels: np.ndarray, size: tuple[int, int]) -> np.ndarray:
    """(h, w) -> (H, W) by nearest neighbour, as `core.preprocess.nearest` does."""
    rows, columns = (
        (2 * np.arange(length) + 1) * before // (2 * length) for length, before in zip(size, labels.shape, strict=True)
    )
    return labels[rows[:, None], columns]
