"""Furniture of the pavement: lamp posts, road signs, traffic lights, crossing beacons, bollards."""

from functools import lru_cache

import numpy as np

from steadyseg.street.paint.canvas import POLE, SIGN
from steadyseg.street.paint.light import Color
from steadyseg.street.paint.mesh import Face, Mesh, box, mesh, panel, rectangle, ring

GALVANISED: Color = (140, 144, 146)
BLACK: Color = (38, 40, 42)
WHITE: Color = (240, 240, 236)
RED: Color = (206, 26, 36)
BLUE: Color = (22, 84, 176)
GREEN: Color = (14, 104, 70)
YELLOW: Color = (250, 208, 40)


def _post(radius: float, height: float, color: Color, right: float = 0.0) -> list[Face]:
    return box((right - radius, 0.0, -radius), (right + radius, height, radius), color, POLE)


@lru_cache(maxsize=16)
def lamp_post(side: int, lit: bool, black: bool) -> Mesh:
    """A lamp post of eight metres with an arm over the road; `side` is the side of the road it stands on."""
    color = BLACK if black else GALVANISED
    faces = _post(0.13, 1.3, color) + _post(0.085, 7.6, color)
    low, high = sorted((0.0, -1.7 * side))
    faces += box((low, 7.52, -0.05), (high, 7.64, 0.05), color, POLE)
    low, high = sorted((-1.1 * side, -1.8 * side))
    faces += box((low, 7.42, -0.14), (high, 7.52, 0.14), (255, 236, 190) if lit else (196, 198, 196), POLE, lit)
    return mesh(faces)


def _plate(outer: np.ndarray, inner: np.ndarray, rim: Color, middle: Color) -> list[Face]:
    back = panel(outer, 0.0, (120, 122, 124), SIGN, 1)
    return [back, panel(outer, -0.05, rim, SIGN), panel(inner, -0.06, middle, SIGN)]


def _disc(
    height: float, radius: float, rim: Color, middle: Color, share: float = 0.78, corners: int = 20
) -> list[Face]:
    start = np.pi / 2 if corners == 3 else 0.0
    outer, inner = (ring(0.0, height, size, corners, start) for size in (radius, radius * share))
    return _plate(outer, inner, rim, middle)


def _board(left: float, low: float, right: float, high: float, rim: Color, middle: Color) -> list[Face]:
    inner = rectangle(left + 0.05, low + 0.05, right - 0.05, high - 0.05)
    return _plate(rectangle(left, low, right, high), inner, rim, middle)


def _marks(color: Color, text: str) -> list[Face]:
    """Reads marks between commas: rectangles `left low right high`, and polygons, `right up` of each corner."""
    marks = [np.array(mark.split(), np.float64) for mark in text.split(",")]
    outlines = [rectangle(*mark) if len(mark) == 4 else mark.reshape(-1, 2) for mark in marks]
    return [panel(outline, -0.07, color, SIGN) for outline in outlines]


DIRECTIONS = _marks(
    WHITE,
    "-1.0 3.35 0.3 3.5, -1.0 3.05 0.1 3.2, -1.0 2.75 0.4 2.9, "
    "0.62 2.75 0.78 2.75 0.78 3.3 0.92 3.3 0.7 3.58 0.48 3.3 0.62 3.3",
)
SIGNS: dict[str, list[Face]] = {
    "speed limit": _disc(2.8, 0.42, RED, WHITE)
    + _marks(
        BLACK,
        "-0.2 2.64 -0.06 2.69, -0.2 2.77 -0.06 2.82, -0.2 2.9 -0.06 2.95, -0.1 2.64 -0.05 2.95, "
        "0.04 2.64 0.22 2.69, 0.04 2.9 0.22 2.95, 0.04 2.64 0.09 2.95, 0.17 2.64 0.22 2.95",
    ),
    "warning": _disc(2.75, 0.55, RED, WHITE, 0.7, 3) + _marks(BLACK, "-0.05 2.68 0.05 2.98, -0.05 2.56 0.05 2.63"),
    "no entry": _disc(2.8, 0.42, WHITE, RED, 0.94) + _marks(WHITE, "-0.28 2.72 0.28 2.88"),
    "keep left": _disc(2.8, 0.42, WHITE, BLUE, 0.93)
    + _marks(WHITE, "-0.25 2.58 0.0 2.6 -0.08 2.68 0.2 2.96 0.1 3.05 -0.17 2.77 -0.24 2.84"),
    "parking": _board(-0.36, 2.4, 0.36, 3.2, WHITE, BLUE)
    + _marks(
        WHITE,
        "-0.16 2.55 -0.06 3.05, -0.06 2.96 0.14 3.05, -0.06 2.76 0.14 2.85, 0.1 2.76 0.19 3.05",
    ),
    "direction": _board(-1.15, 2.6, 1.15, 3.7, WHITE, GREEN) + DIRECTIONS,
    "motorway": _board(-1.15, 2.6, 1.15, 3.7, WHITE, BLUE) + DIRECTIONS,
    "bus stop": _board(-0.3, 2.3, 0.3, 3.1, BLACK, YELLOW)
    + _marks(RED, "-0.2 2.75 0.2 2.98")
    + _marks(BLACK, "-0.2 2.42 0.2 2.6"),
}
LARGE = ("direction", "motorway")
"""Signs on two posts."""


@lru_cache(maxsize=16)
def sign(name: str) -> Mesh:
    """A road sign on its posts, facing the camera."""
    posts = [(3.7, -0.8), (3.7, 0.8)] if name in LARGE else [(3.0, 0.0)]
    return mesh([face for height, right in posts for face in _post(0.05, height, GALVANISED, right)] + SIGNS[name])


@lru_cache(maxsize=1)
def traffic_light() -> Mesh:
    """Three lamps, of which green is lit, with a backing board on a post of three metres."""
    housing = box((-0.2, 2.3, -0.12), (0.2, 3.5, 0.12), (26, 27, 29), SIGN)
    backing = [panel(rectangle(-0.34, 2.16, 0.34, 3.64), 0.13, (30, 31, 33), SIGN, facing) for facing in (1, -1)]
    colors = ((3.27, (84, 22, 22), False), (2.9, (88, 64, 22), False), (2.53, (60, 255, 150), True))
    lamps = [panel(ring(0.0, height, 0.14, 14), -0.13, color, SIGN, -1, lit) for height, color, lit in colors]
    return mesh(_post(0.07, 2.4, BLACK) + backing + housing + lamps)


@lru_cache(maxsize=4)
def beacon(lit: bool) -> Mesh:
    """A Belisha beacon: an amber globe on a striped post beside a crossing."""
    faces = []
    for step in range(8):
        color = BLACK if step % 2 else WHITE
        faces += box((-0.07, 0.35 * step, -0.07), (0.07, 0.35 * (step + 1), 0.07), color, POLE)
    globe = panel(ring(0.0, 3.0, 0.22, 14), 0.0, (255, 190, 50) if lit else (236, 164, 46), POLE, -1, lit)
    return mesh([*faces, globe])


@lru_cache(maxsize=1)
def bollard() -> Mesh:
    """A waist-high black post with a white band."""
    faces = box((-0.08, 0.0, -0.08), (0.08, 0.78, 0.08), BLACK, POLE)
    faces += box((-0.085, 0.78, -0.085), (0.085, 0.88, 0.085), WHITE, POLE)
    return mesh(faces + box((-0.08, 0.88, -0.08), (0.08, 1.0, 0.08), BLACK, POLE))


@lru_cache(maxsize=1)
def telegraph_pole() -> Mesh:
    """A wooden pole of nine metres with a cross arm."""
    timber: Color = (104, 84, 66)
    faces = _post(0.13, 9.0, timber) + box((-0.9, 8.3, -0.06), (0.9, 8.42, 0.06), timber, POLE)
    for right in (-0.8, -0.4, 0.4, 0.8):
        faces += box((right - 0.04, 8.42, -0.04), (right + 0.04, 8.58, 0.04), (210, 214, 216), POLE)
    return mesh(faces)
