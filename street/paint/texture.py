"""Textures of colour and class, with copies halved along each axis separately, and the noise that they are made of."""

import cv2
import numpy as np

CLEAR = 255
"""Class channel of a texel that lets what is behind it through."""


class Texture:
    """(H, W, 4) uint8: red, green, blue, class. It has one class; CLEAR texels of `cutout` textures are not drawn."""

    def __init__(self, texels: np.ndarray, cutout: bool = False) -> None:
        self.texels = texels
        self.cutout = cutout
        self._reduced: dict[tuple[int, int], np.ndarray] = {(0, 0): texels}

    def reduced_to(self, width: float, height: float) -> np.ndarray:
        """Returns the smallest copy with at least `width` x `height` texels; a copy halves an axis some times."""
        rows, columns = self.texels.shape[:2]
        halvings = (_halvings(columns, width), _halvings(rows, height))
        if halvings not in self._reduced:
            size = (max(columns >> halvings[0], 1), max(rows >> halvings[1], 1))
            if self.cutout:
                self._reduced[halvings] = _reduce_cutout(self.texels, size)
            else:
                self._reduced[halvings] = cv2.resize(self.texels, size, interpolation=cv2.INTER_AREA)
        return self._reduced[halvings]


def _halvings(texels: int, pixels: float) -> int:
    return max(int(np.log2(texels / max(pixels, 1.0)) + 0.35), 0) if texels > pixels else 0


def _reduce_cutout(texels: np.ndarray, size: tuple[int, int]) -> np.ndarray:
    """Averages the texels that are not CLEAR; a reduced texel is CLEAR unless nearly half of its area is drawn."""
    there = (texels[..., 3] != CLEAR).astype(np.float32)
    share = cv2.resize(there, size, interpolation=cv2.INTER_AREA)
    sums = cv2.resize(texels[..., :3] * there[..., None], size, interpolation=cv2.INTER_AREA)
    colors = np.clip(sums / np.maximum(share, 1e-3)[..., None], 0, 255)
    label = texels[..., 3][there > 0].max()  # cut-outs have one class besides CLEAR
    return np.dstack((colors, np.where(share > 0.42, label, CLEAR))).astype(np.uint8)


def fractal_noise(random: np.random.Generator, rows: int, columns: int, cells: int, octaves: int = 4) -> np.ndarray:
    """Noise (rows, columns) float32 of mean 0 and deviation about 1; the first octave has `cells` grid cells across."""
    total = np.zeros((rows, columns), np.float32)
    for octave in range(octaves):
        across = cells << octave
        down = max(round(across * rows / columns), 2)
        grid = random.standard_normal((down, across)).astype(np.float32)
        total += cv2.resize(grid, (columns, rows), interpolation=cv2.INTER_CUBIC) * 0.55**octave
    return (total - total.mean()) / max(float(total.std()), 1e-6)


def labelled(colors: np.ndarray, label: int) -> np.ndarray:
    """Colours (H, W, 3) of any type -> texels (H, W, 4) uint8 with one class."""
    rows, columns = colors.shape[:2]
    return np.dstack((np.clip(colors, 0, 255).astype(np.uint8), np.full((rows, columns), label, np.uint8)))
