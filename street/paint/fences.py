"""Fences and railings as textures: boards are solid, pickets and bars let the ground behind through."""

from functools import lru_cache

import numpy as np

from steadyseg.street.paint.camera import generator
from steadyseg.street.paint.canvas import FENCE
from steadyseg.street.paint.light import Color
from steadyseg.street.paint.texture import CLEAR, Texture

TEXELS_PER_METRE = 64
LENGTH_M = 4.0
HEIGHTS_M = {"boards": 1.7, "pickets": 1.0, "railing": 1.25, "guard": 1.1}


def _bar(sheet: np.ndarray, left: float, low: float, right: float, high: float, color: np.ndarray | Color) -> None:
    """Draws a filled rectangle; coordinates are metres from the bottom left."""
    rows = len(sheet)
    top, bottom = rows - round(high * TEXELS_PER_METRE), rows - round(low * TEXELS_PER_METRE)
    first, end = round(left * TEXELS_PER_METRE), round(right * TEXELS_PER_METRE)
    sheet[max(top, 0) : bottom, first : max(end, first + 1)] = (*np.clip(color, 0, 255), FENCE)


def _uprights(kind: str, pitch: float, width: float, color: Color, random: np.random.Generator) -> np.ndarray:
    height = HEIGHTS_M[kind]
    sheet = np.zeros((round(height * TEXELS_PER_METRE), round(LENGTH_M * TEXELS_PER_METRE), 4), np.uint8)
    sheet[..., 3] = CLEAR
    for left in np.arange(0.0, LENGTH_M - 1e-6, pitch):
        top = height - (0.0 if kind != "boards" else 0.05 * random.random())
        tone = np.array(color) * random.uniform(0.9, 1.06)
        _bar(sheet, left, 0.0 if kind != "guard" else 0.12, left + width, top, tone)
        if kind in ("boards", "pickets"):  # the shaded edge of every board
            _bar(sheet, left + width - 0.02, 0.0, left + width, top, 0.72 * tone)
    return sheet


@lru_cache(maxsize=16)
def fence_texture(kind: str, variant: int) -> Texture:
    """The texture of four metres of fence; `kind` is a key of HEIGHTS_M."""
    random = generator("texture", 80 + list(HEIGHTS_M).index(kind), variant)
    height = HEIGHTS_M[kind]
    if kind == "boards":
        colors: tuple[Color, ...] = ((136, 104, 74), (112, 92, 76), (96, 84, 66))
        return Texture(_uprights(kind, 0.125, 0.125, colors[variant % 3], random), cutout=True)
    if kind == "pickets":
        sheet = _uprights(kind, 0.16, 0.1, (228, 228, 222), random)
        for low in (0.25, 0.7):
            _bar(sheet, 0.0, low, LENGTH_M, low + 0.08, (206, 206, 200))
        return Texture(sheet, cutout=True)
    color: Color = ((34, 38, 40), (30, 52, 44), (120, 124, 126))[variant % 3]
    sheet = _uprights(kind, 0.125, 0.05, color, random)
    for low in (0.1, height - 0.16):
        _bar(sheet, 0.0, low, LENGTH_M, low + 0.07, color)
    for left in (0.0, 2.0):
        _bar(sheet, left, 0.0, left + 0.1, height, color)
    return Texture(sheet, cutout=True)
