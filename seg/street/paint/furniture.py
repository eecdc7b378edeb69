"""Furniture of the pavement: lamp posts, road signs, traffic lights, crossing beacons, bollards."""

from functools import lru_cache

import numpy as np

from steadyseg.seg.street.paint.canvas import POLE, SIGN
from steadyseg.seg.street.paint.light import Color
from steadyseg.seg.street.paint.mesh import Face, Mesh, box, mesh, panel, rectangle, ring

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


def _disc(
    height: float, radius: float, rim: Color, middle: Color, share: float = 0.78, corners: int = 20
) -> list[Face]:
    start = np.pi / 2 if corners == 3 else 0.0
    outer = ring(0.0, height, radius, corners, start)
    inner = ring(0.0, height, radius * share, corners, start)
    back = panel(outer, 0.0, (120, 122, 124), SIGN, 1)
    return [back, panel(outer, -0.05, rim, SIGN), panel(inner, -0.06, middle, SIGN)]


def _board(left: float, low: float, right: float, high: float, color: Color, rim: Color) -> list[Face]:
    outer, inner = rectangle(left, low, right, high), rectangle(left + 0.05, low + 0.05, right - 0.05, high - 0.05)
    back = panel(outer, 0.0, (120, 122, 124), SIGN, 1)
    return [back, panel(outer, -0.05, rim, SIGN), panel(inner, -0.06, color, SIGN)]


def _mark(left: float, low: float, right: float, high: float, color: Color) -> Face:
    return panel(rectangle(left, low, right, high), -0.07, color, SIGN)


def _speed_limit() -> list[Face]:
    digits = [_mark(-0.2, y, -0.06, y + 0.05, BLACK) for y in (2.64, 2.77, 2.9)]
    digits += [_mark(-0.1, 2.64, -0.05, 2.95, BLACK), _mark(0.04, 2.64, 0.22, 2.69, BLACK)]
    digits += [
        _mark(0.04, 2.9, 0.22, 2.95, BLACK),
        _mark(0.04, 2.64, 0.09, 2.95, BLACK),
        _mark(0.17, 2.64, 0.22, 2.95, BLACK),
    ]
    return _disc(2.8, 0.42, RED, WHITE) + digits


def _warning() -> list[Face]:
    stroke, dot = _mark(-0.05, 2.68, 0.05, 2.98, BLACK), _mark(-0.05, 2.56, 0.05, 2.63, BLACK)
    return [*_disc(2.75, 0.55, RED, WHITE, 0.7, 3), stroke, dot]


def _no_entry() -> list[Face]:
    return [*_disc(2.8, 0.42, WHITE, RED, 0.94), _mark(-0.28, 2.72, 0.28, 2.88, WHITE)]


def _keep_left() -> list[Face]:
    arrow = np.array(((-0.25, 2.58), (0.0, 2.6), (-0.08, 2.68), (0.2, 2.96), (0.1, 3.05), (-0.17, 2.77), (-0.24, 2.84)))
    return [*_disc(2.8, 0.42, WHITE, BLUE, 0.93), panel(arrow, -0.07, WHITE, SIGN)]


def _parking() -> list[Face]:
    letter = [_mark(-0.16, 2.55, -0.06, 3.05, WHITE), _mark(-0.06, 2.96, 0.14, 3.05, WHITE)]
    letter += [_mark(-0.06, 2.76, 0.14, 2.85, WHITE), _mark(0.1, 2.76, 0.19, 3.05, WHITE)]
    return _board(-0.36, 2.4, 0.36, 3.2, BLUE, WHITE) + letter


def _direction(color: Color) -> list[Face]:
    lines = [_mark(-1.0, 3.35, 0.3, 3.5, WHITE), _mark(-1.0, 3.05, 0.1, 3.2, WHITE), _mark(-1.0, 2.75, 0.4, 2.9, WHITE)]
    arrow = panel(
        np.array(((0.62, 2.75), (0.78, 2.75), (0.78, 3.3), (0.92, 3.3), (0.7, 3.58), (0.48, 3.3), (0.62, 3.3))),
        -0.07,
        WHITE,
        SIGN,
    )
    return [*_board(-1.15, 2.6, 1.15, 3.7, color, WHITE), *lines, arrow]


def _bus_stop() -> list[Face]:
    return [
        *_board(-0.3, 2.3, 0.3, 3.1, YELLOW, BLACK),
        _mark(-0.2, 2.75, 0.2, 2.98, RED),
        _mark(-0.2, 2.42, 0.2, 2.6, BLACK),
    ]


SIGNS = {
    "speed limit": _speed_limit,
    "warning": _warning,
    "no entry": _no_entry,
    "keep left": _keep_left,
    "parking": _parking,
    "direction": lambda: _direction(GREEN),
    "motorway": lambda: _direction(BLUE),
    "bus stop": _bus_stop,
}


@lru_cache(maxsize=16)
def sign(name: str) -> Mesh:
    """A road sign on its post, facing the camera."""
    top = {"direction": 3.7, "motorway": 3.7}.get(name, 3.0)
    posts = (
        _post(0.05, top, GALVANISED, -0.8) + _post(0.05, top, GALVANISED, 0.8)
        if top > 3.5
        else _post(0.05, top, GALVANISED)
    )
    return mesh(posts + SIGNS[name]())


@lru_cache(maxsize=16)
def traffic_light(green: bool) -> Mesh:
    """Three lamps with a backing board on a post of three metres."""
    housing = box((-0.2, 2.3, -0.12), (0.2, 3.5, 0.12), (26, 27, 29), SIGN)
    backing = [panel(rectangle(-0.34, 2.16, 0.34, 3.64), 0.13, (30, 31, 33), SIGN, facing) for facing in (1, -1)]
    lit = {"red": (255, 44, 34), "amber": (255, 176, 40), "green": (60, 255, 150)}
    dark = {"red": (84, 22, 22), "amber": (88, 64, 22), "green": (18, 66, 44)}
    lamps = []
    for name, height, on in (("red", 3.27, not green), ("amber", 2.9, False), ("green", 2.53, green)):
        color = lit[name] if on else dark[name]
        lamps.append(panel(ring(0.0, height, 0.14, 14), -0.13, color, SIGN, -1, on))
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
