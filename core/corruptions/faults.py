"""Faults of cameras, light and transmission that leave the labels of a picture valid, each in three strengths.

None of them is among the 15 types by which robustness is measured.
"""

from collections.abc import Callable

import numpy as np

from steadyseg.core.corruptions.camera_changes import gains, gamma, h264

Fault = Callable[[np.ndarray, int, np.random.Generator], np.ndarray]
"""(H, W, 3) uint8, strength 0, 1 or 2, generator -> (H, W, 3) uint8."""


def blotches(image: np.ndarray, strength: int, draw: np.random.Generator) -> np.ndarray:
    """Adds smooth coloured noise: a grid of random colours, 6 to 39 from top to bottom, enlarged to the picture."""
    import cv2

    height, width = image.shape[:2]
    count = int(draw.integers(6, 40))
    noise = draw.normal(0, (15, 30, 55)[strength], (count, max(1, count * width // height), 3)).astype(np.float32)
    return _to_bytes(image + cv2.resize(noise, (width, height), interpolation=cv2.INTER_CUBIC))


def lines(image: np.ndarray, strength: int, draw: np.random.Generator) -> np.ndarray:
    """Adds sensor lines: a random colour to each row, or to each column."""
    height, width = image.shape[:2]
    shape = (height, 1, 3) if draw.random() < 0.5 else (1, width, 3)
    return _to_bytes(image + draw.normal(0, (6, 14, 28)[strength], shape))


def glare(image: np.ndarray, strength: int, draw: np.random.Generator) -> np.ndarray:
    """Adds one to three round lights, with radii of an eighth to almost half of the height."""
    height, width = image.shape[:2]
    rows, columns = np.mgrid[0:height, 0:width]
    lit = image.astype(np.float32)
    for _ in range(strength + 1):
        row, column, radius = draw.uniform(0, height), draw.uniform(0, width), height * draw.uniform(0.12, 0.45)
        shape = np.exp(-((rows - row) ** 2 + (columns - column) ** 2) / radius**2)
        lit += (90, 150, 220)[strength] * shape[..., None] * draw.uniform(0.7, 1.0, 3)
    return _to_bytes(lit)


def patches(image: np.ndarray, strength: int, draw: np.random.Generator) -> np.ndarray:
    """3, 8 or 16 rectangles of one colour, each side up to a third of the height."""
    worse = image.copy()
    for _ in range((3, 8, 16)[strength]):
        rows, columns = _rectangle(image, draw, 0.06, 0.3)
        worse[rows, columns] = draw.integers(0, 256, 3)
    return worse


def displaced(image: np.ndarray, strength: int, draw: np.random.Generator) -> np.ndarray:
    """10, 40 or 120 square blocks of a tenth of the height, each with the content of another place."""
    worse = image.copy()
    for _ in range((10, 40, 120)[strength]):
        to, source = (_rectangle(image, draw, 0.09, 0.09) for _ in range(2))
        worse[to] = image[source]
    return worse


def solarised(image: np.ndarray, strength: int, draw: np.random.Generator) -> np.ndarray:
    """Levels from 200, 140 or 90 on are inverted."""
    return np.where(image < (200, 140, 90)[strength], image, 255 - image)


def cast(image: np.ndarray, strength: int, draw: np.random.Generator) -> np.ndarray:
    """A colour cast: a factor on each channel, up to 1.3, 1.6 or 2 either way."""
    return gains(image, *np.exp(draw.uniform(-1, 1, 3) * (0.25, 0.45, 0.7)[strength]))


def underexposed(image: np.ndarray, strength: int, draw: np.random.Generator) -> np.ndarray:
    """Exposure far too low."""
    return gamma(image, (1.7, 2.4, 3.4)[strength])


def low_rate(image: np.ndarray, strength: int, draw: np.random.Generator) -> np.ndarray:
    """H.264 at a rate far too low."""
    return h264([image], image.shape[0], crf=(34, 40, 46)[strength])


FAULTS: tuple[Fault, ...] = (blotches, lines, glare, patches, displaced, solarised, cast, underexposed, low_rate)


def _rectangle(image: np.ndarray, draw: np.random.Generator, least: float, most: float) -> tuple[slice, slice]:
    """Rows and columns of a rectangle whose sides are a share of the height."""
    height, width = image.shape[:2]
    sides = np.maximum(1, np.rint(draw.uniform(least, most, 2) * min(height, width))).astype(int)
    row, column = (int(draw.integers(0, whole - side + 1)) for whole, side in zip((height, width), sides, strict=True))
    return slice(row, row + sides[0]), slice(column, column + sides[1])


def _to_bytes(values: np.ndarray) -> np.ndarray:
    return np.clip(np.rint(values), 0, 255).astype(np.uint8)
