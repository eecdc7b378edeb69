"""Trees and hedges: cut-out textures painted clump by clump, dark and inside first, sunlit and outside last."""

from functools import lru_cache

import cv2
import numpy as np

from steadyseg.street.paint.camera import generator
from steadyseg.street.paint.canvas import TREE
from steadyseg.street.paint.light import Color
from steadyseg.street.paint.texture import CLEAR, Texture, fractal_noise, labelled

ROWS, COLUMNS = 448, 384

Crown = tuple[tuple[float, float, float, float], ...]
"""Ellipses as (right, up, half width, half height), in shares of the tree's height."""

SPECIES: dict[str, tuple[Crown, Color, float]] = {
    # crown, foliage colour, trunk half width as a share of the height
    "plane": (
        ((0, 0.62, 0.26, 0.24), (-0.2, 0.55, 0.18, 0.18), (0.2, 0.57, 0.18, 0.18), (0.03, 0.8, 0.2, 0.17)),
        (104, 128, 58),
        0.022,
    ),
    "lime": (
        ((0, 0.58, 0.24, 0.26), (0.03, 0.78, 0.17, 0.19), (-0.1, 0.48, 0.2, 0.14), (0.12, 0.5, 0.18, 0.14)),
        (92, 124, 62),
        0.02,
    ),
    "maple": (((0, 0.6, 0.3, 0.22), (-0.16, 0.7, 0.17, 0.16), (0.15, 0.74, 0.18, 0.16)), (132, 128, 54), 0.021),
    "poplar": (((0, 0.55, 0.13, 0.36), (0.02, 0.75, 0.1, 0.22), (-0.02, 0.3, 0.11, 0.14)), (78, 108, 58), 0.018),
    "young": (((0, 0.66, 0.19, 0.2), (0.05, 0.8, 0.13, 0.15), (-0.07, 0.72, 0.14, 0.16)), (118, 146, 66), 0.013),
    "copper": (((0, 0.6, 0.26, 0.24), (-0.14, 0.72, 0.17, 0.16), (0.16, 0.68, 0.18, 0.18)), (122, 74, 58), 0.02),
}
_CLUMPS = 2600


def _trunk(image: np.ndarray, random: np.random.Generator, half_width: float, spread: float) -> None:
    """Paints a tapering trunk with branches into the crown."""
    bark = (92.0, 78.0, 64.0, float(TREE))
    shade = (64.0, 54.0, 46.0, float(TREE))
    center, w = COLUMNS / 2, half_width * ROWS
    foot, top = (center - 1.3 * w, center + 1.3 * w), (center - 0.5 * w, center + 0.5 * w)
    outline = np.array(((foot[0], ROWS), (foot[1], ROWS), (top[1], 0.4 * ROWS), (top[0], 0.4 * ROWS)))
    cv2.fillPoly(image, [np.rint(outline).astype(np.int32)], bark)
    outline[[0, 3], 0] += 1.3 * w
    cv2.fillPoly(image, [np.rint(outline).astype(np.int32)], shade)
    for _ in range(9):
        low = random.uniform(0.42, 0.66) * ROWS
        end = (int(center + random.uniform(-spread, spread) * ROWS), int(low - random.uniform(0.1, 0.24) * ROWS))
        cv2.line(image, (int(center), int(low)), end, shade, max(int(0.7 * w), 1))


def _foliage(image: np.ndarray, random: np.random.Generator, crown: Crown, color: Color) -> None:
    sizes = np.array([rx * ry for _, _, rx, ry in crown])
    owner = random.choice(len(crown), _CLUMPS, p=sizes / sizes.sum())
    angle, radius = random.uniform(0, 2 * np.pi, _CLUMPS), np.sqrt(random.uniform(0, 1.08, _CLUMPS))
    shape = np.array(crown)[owner]
    across, up = radius * np.cos(angle), radius * np.sin(angle)
    front = np.sqrt(np.maximum(1.08 - radius**2, 0)) * random.uniform(-0.4, 1, _CLUMPS)
    lit = 0.62 + 0.26 * up + 0.13 * across + 0.2 * front + 0.07 * random.standard_normal(_CLUMPS)
    lit += 0.25 * (shape[:, 1] + up * shape[:, 3] - 0.6)
    u = COLUMNS / 2 + (shape[:, 0] + across * shape[:, 2]) * ROWS
    v = ROWS - (shape[:, 1] + up * shape[:, 3]) * ROWS
    hue = random.standard_normal((_CLUMPS, 1)) * np.array((7.0, 4.0, 3.0))
    colors = np.clip((np.array(color) + hue) * (0.35 + 1.05 * np.clip(lit, 0, 1.15))[:, None], 0, 255)
    for index in np.argsort(front + 0.35 * up).tolist():
        center = (int(u[index]), int(v[index]))
        axes = (int(random.integers(3, 7)), int(random.integers(2, 5)))
        turn = float(random.uniform(0, 180))
        cv2.ellipse(image, center, axes, turn, 0, 360, (*colors[index].tolist(), TREE), cv2.FILLED)


@lru_cache(maxsize=64)
def tree_texture(species: str, variant: int) -> Texture:
    """The texture of a tree that is lit from the right; mirror it for a sun on the left."""
    crown, color, half_width = SPECIES[species]
    random = generator("texture", 100 + list(SPECIES).index(species), variant)
    image = np.zeros((ROWS, COLUMNS, 4), np.uint8)
    image[..., 3] = CLEAR
    _trunk(image, random, half_width, spread=0.75 * crown[0][2])
    jitter = random.normal(0, 0.02, (len(crown), 4))
    _foliage(image, random, tuple(map(tuple, (np.array(crown) + jitter).tolist())), color)
    return Texture(image, cutout=True)


@lru_cache(maxsize=8)
def hedge_texture(variant: int) -> Texture:
    """The texture of six metres of clipped hedge, 1.5 m high."""
    random = generator("texture", 90, variant)
    rows, columns = 96, 384
    leaf = np.array((84, 110, 56)) * random.uniform(0.85, 1.1)
    tone = 0.62 + 0.16 * fractal_noise(random, rows, columns, 40, 3) + np.linspace(0.34, -0.2, rows)[:, None]
    image = labelled(leaf * tone[..., None], TREE)
    ragged = 3 + 2.5 * fractal_noise(random, 2, columns, 60, 2)[0]
    image[np.arange(rows)[:, None] < ragged[None], 3] = CLEAR
    return Texture(image, cutout=True)
