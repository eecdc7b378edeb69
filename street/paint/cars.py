"""Cars, vans and a bus as lofted meshes: an outline of (forward, up, half width) from bumper to bumper."""

from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from steadyseg.street.paint.canvas import CAR, ROAD
from steadyseg.street.paint.light import Color, read_triples, scaled
from steadyseg.street.paint.mesh import Face, Mesh, face, mesh, panel, rectangle, ring

Outline = tuple[tuple[float, float, float], ...]

PAINTS = read_triples(
    "196 198 202, 232 232 230, 52 55 60, 28 30 34, 128 132 138, 168 30 34, 32 62 128, 74 108 150, 34 74 58, "
    "142 122 92, 206 168 60, 96 26 36, 88 150 170"
)
GLASS: Color = (58, 68, 78)
RUBBER: Color = (30, 30, 32)
TRIM: Color = (46, 47, 50)


@dataclass(frozen=True)
class CarModel:
    body: Outline
    """Outline from bumper to bumper, over the bonnet and along the belt line."""
    cabin: Outline
    """Outline: windscreen base, roof front, roof rear, rear window base."""
    axles: tuple[float, float]
    wheel_m: float
    panes: tuple[tuple[float, float], ...]
    """Front and rear edge of each side window, as shares of the cabin's length."""
    paints: tuple[Color, ...] = PAINTS


MODELS: dict[str, CarModel] = {
    "hatchback": CarModel(
        read_triples(
            "1.92 0.24 0.74, 2.0 0.5 0.8, 1.88 0.72 0.8, 1.05 0.95 0.84, -1.8 1.0 0.84, -1.95 0.72 0.83, "
            "-2.0 0.5 0.83, -1.92 0.26 0.78"
        ),
        read_triples("1.15 0.93 0.8, 0.3 1.45 0.62, -1.25 1.48 0.63, -1.86 0.98 0.79"),
        (1.28, -1.25),
        0.31,
        ((0.1, 0.48), (0.53, 0.9)),
    ),
    "saloon": CarModel(
        read_triples(
            "2.22 0.24 0.76, 2.3 0.5 0.84, 2.15 0.7 0.84, 1.1 0.93 0.87, -1.3 0.96 0.87, -2.2 0.96 0.84, "
            "-2.28 0.6 0.85, -2.2 0.26 0.8"
        ),
        read_triples("1.2 0.91 0.82, 0.25 1.4 0.64, -1.0 1.41 0.64, -1.75 0.96 0.8"),
        (1.42, -1.38),
        0.32,
        ((0.1, 0.48), (0.53, 0.88)),
    ),
    "estate": CarModel(
        read_triples(
            "2.25 0.34 0.8, 2.32 0.6 0.88, 2.2 0.88 0.88, 1.15 1.1 0.91, -2.05 1.14 0.91, -2.2 0.8 0.9, "
            "-2.25 0.55 0.9, -2.18 0.34 0.84"
        ),
        read_triples("1.2 1.08 0.86, 0.45 1.66 0.7, -1.75 1.7 0.7, -2.1 1.12 0.86"),
        (1.42, -1.38),
        0.37,
        ((0.08, 0.36), (0.4, 0.66), (0.7, 0.93)),
    ),
    "van": CarModel(
        read_triples(
            "2.5 0.34 0.84, 2.58 0.65 0.94, 2.5 0.95 0.94, 1.9 1.25 0.97, -2.5 1.25 0.97, -2.52 0.9 0.97, "
            "-2.54 0.6 0.97, -2.5 0.34 0.94"
        ),
        read_triples("1.98 1.22 0.93, 1.2 2.2 0.82, -2.4 2.26 0.86, -2.5 1.25 0.95"),
        (1.6, -1.6),
        0.36,
        ((0.07, 0.24),),
        paints=read_triples("236 236 234, 236 236 234, 214 216 218, 40 74 140, 190 40 36, 62 66 70"),
    ),
    "bus": CarModel(
        read_triples(
            "4.9 0.34 1.15, 5.0 0.6 1.24, 5.0 0.95 1.24, 4.98 1.15 1.24, -4.95 1.15 1.24, -5.0 0.95 1.24, "
            "-5.0 0.6 1.24, -4.95 0.34 1.2"
        ),
        read_triples("4.98 1.15 1.22, 4.75 3.0 1.18, -4.8 3.05 1.18, -4.95 1.15 1.22"),
        (3.2, -2.6),
        0.48,
        ((0.03, 0.15), (0.17, 0.33), (0.35, 0.51), (0.53, 0.69), (0.71, 0.95)),
        paints=read_triples("186 34 36, 40 96 160, 226 190 60, 46 120 84"),
    ),
}


def _across(outline: Outline, index: int) -> list[tuple[float, float, float]]:
    """The quad between two neighbouring outline points, left to right."""
    (z0, y0, w0), (z1, y1, w1) = outline[index], outline[index + 1]
    return [(-w0, y0, z0), (w0, y0, z0), (w1, y1, z1), (-w1, y1, z1)]


def _rounded(outline: Outline) -> Outline:
    """The outline with its corners cut once (Chaikin); its ends stay."""
    points = np.array(outline)
    before, after = 0.78 * points[:-1] + 0.22 * points[1:], 0.22 * points[:-1] + 0.78 * points[1:]
    cut = np.stack((before, after), axis=1).reshape(-1, 3)[1:-1]
    return tuple((z, y, w) for z, y, w in np.concatenate((points[:1], cut, points[-1:])).tolist())


def _polished(paint: Color, up: float) -> Color:
    """The colour of paint that mirrors the sky; `up` is the upward part of its normal."""
    lift = 30.0 * max(up, 0.0)
    return (paint[0] * 0.96 + lift * 0.85, paint[1] * 0.96 + lift * 0.95, paint[2] * 0.96 + lift * 1.1)


def _outward(outline: Outline, index: int) -> Color:
    (z0, y0, _), (z1, y1, _) = outline[index], outline[index + 1]
    return (0.0, z0 - z1, y1 - y0)


def _inset(quad: np.ndarray, left: float, right: float, low: float, high: float) -> np.ndarray:
    """The part of a quad (bottom left, bottom right, top right, top left) between shares of its sides."""

    def at(across: float, up: float) -> np.ndarray:
        bottom = quad[0] + (quad[1] - quad[0]) * across
        top = quad[3] + (quad[2] - quad[3]) * across
        return bottom + (top - bottom) * up

    return np.array((at(left, low), at(right, low), at(right, high), at(left, high)))


def _undercarriage(model: CarModel) -> list[Face]:
    """The dark ground below, the underside, and the tyres as seen from the front and the back."""
    front, rear = model.body[0], model.body[-1]
    width = model.body[3][2]
    below = [(-width, 0.0, rear[0]), (width, 0.0, rear[0]), (width, 0.0, front[0]), (-width, 0.0, front[0])]
    faces = [face(below, (34, 34, 37), ROAD, (0, 1, 0))]
    for (z, y, w), axle, facing in ((front, model.axles[0], 1), (rear, model.axles[1], -1)):
        faces.append(panel(rectangle(-w, 0.17, w, y + 0.05), z - 0.3 * facing, (22, 22, 24), CAR, facing))
        for inner, outer in ((-w, -w + 0.19), (w - 0.19, w)):
            tread = rectangle(inner, 0.0, outer, y)
            faces.append(panel(tread, axle + 0.6 * model.wheel_m * facing, RUBBER, CAR, facing))
    return faces


def _side(model: CarModel, paint: Color, side: int) -> list[Face]:
    """One flank: door skin, darker sill, shoulder line and wheels."""
    direction = (side, 0, 0)
    flank = np.array([(side * w, y, z) for z, y, w in _rounded(model.body)])
    width = model.body[3][2]
    front, rear, belt = model.body[1][0], model.body[-2][0], model.body[3][1]
    faces = [face(flank, paint, CAR, direction)]
    strips = (
        (0.24, 0.32, TRIM),
        (0.32, 0.34 + 0.3 * belt, scaled(paint, 0.8)),
        (belt - 0.14, belt - 0.09, _polished(paint, 0.6)),
    )
    for low, high, color in strips:
        outline = ((low, front - 0.1), (low, rear + 0.1), (high, rear + 0.06), (high, front - 0.06))
        faces.append(face([(side * width, up, along) for up, along in outline], color, CAR, direction))
    for axle in model.axles:
        for radius, color in ((1.18, (22, 22, 24)), (1.0, RUBBER), (0.66, (150, 152, 156)), (0.25, (80, 82, 86))):
            circle = ring(axle, model.wheel_m, radius * model.wheel_m, 14)
            points = np.column_stack((np.full(14, side * (width + 0.01)), circle[:, 1], circle[:, 0]))
            faces.append(face(points, color, CAR, direction))
    return faces


def _cabin(model: CarModel, paint: Color) -> list[Face]:
    """Pillars and side windows, then windscreen, roof and rear window."""
    faces = []
    for side in (-1, 1):
        wall = np.array([(side * w, y, z) for z, y, w in model.cabin])
        quad = wall[[0, 3, 2, 1]]
        faces.append(face(quad, paint, CAR, (side, 0.2, 0)))
        for left, right in model.panes:
            faces.append(face(_inset(quad, left, right, 0.12, 0.88), GLASS, CAR, (side, 0.2, 0)))
            faces.append(face(_inset(quad, left, right, 0.6, 0.88), (92, 106, 120), CAR, (side, 0.2, 0)))
    parts: tuple[tuple[Color, tuple[tuple[float, float, Color], ...]], ...] = (
        (paint, ((0.06, 0.92, GLASS), (0.55, 0.92, (98, 112, 126)))),
        (_polished(paint, 1.0), ()),
        (paint, ((0.1, 0.84, GLASS), (0.1, 0.4, (98, 112, 126)))),
    )
    for index, (color, panes) in enumerate(parts):
        quad, outward = np.array(_across(model.cabin, index)), _outward(model.cabin, index)
        faces.append(face(quad, color, CAR, outward))
        faces += [face(_inset(quad, 0.06, 0.94, low, high), tone, CAR, outward) for low, high, tone in panes]
    return faces


def _nose(model: CarModel, lit: bool) -> list[Face]:
    """Grille, plate and headlights."""
    z, w = model.body[1][0] + 0.02, model.body[1][2]
    low, high = model.body[1][1], model.body[2][1]
    middle = (low + high) / 2
    lamp: Color = (255, 250, 224) if lit else (226, 230, 232)
    return [
        panel(rectangle(-0.42 * w, middle - 0.09, 0.42 * w, middle + 0.07), z, (30, 31, 33), CAR, 1),
        panel(rectangle(-0.7 * w, 0.3, 0.7 * w, 0.38), z, (40, 41, 44), CAR, 1),
        panel(rectangle(-0.26, 0.41, 0.26, 0.52), z, (236, 236, 230), CAR, 1),
        panel(rectangle(-0.95 * w, middle - 0.07, -0.52 * w, middle + 0.09), z, lamp, CAR, 1, lit),
        panel(rectangle(0.52 * w, middle - 0.07, 0.95 * w, middle + 0.09), z, lamp, CAR, 1, lit),
    ]


def _tail(model: CarModel, lit: bool) -> list[Face]:
    """Bumper, yellow plate and red lamps."""
    z, w = model.body[-2][0] - 0.02, model.body[-2][2]
    low, high = model.body[-2][1], model.body[4][1]
    lamp: Color = (255, 40, 30) if lit else (190, 22, 24)
    return [
        panel(rectangle(-0.9 * w, 0.28, 0.9 * w, 0.38), z, TRIM, CAR),
        panel(rectangle(-0.95 * w, low - 0.06, 0.95 * w, low - 0.03), z, TRIM, CAR),
        panel(rectangle(-0.26, low + 0.03, 0.26, low + 0.15), z, (228, 190, 50), CAR),
        panel(rectangle(-0.97 * w, high - 0.3, -0.74 * w, high - 0.04), z, lamp, CAR, -1, lit),
        panel(rectangle(0.74 * w, high - 0.3, 0.97 * w, high - 0.04), z, lamp, CAR, -1, lit),
    ]


@lru_cache(maxsize=512)
def car_mesh(name: str, paint: Color, lamps: bool = False, brakes: bool = False) -> Mesh:
    """A car that points forward; `lamps` lights head and tail lamps, `brakes` the tail lamps."""
    model = MODELS[name]
    faces = _undercarriage(model) + _side(model, paint, -1) + _side(model, paint, 1)
    body = _rounded(model.body)
    for index in range(len(body) - 1):
        strip = face(_across(body, index), paint, CAR, _outward(body, index))
        faces.append(replace(strip, color=_polished(paint, float(strip.normal[1]))))
    return mesh(faces + _cabin(model, paint) + _nose(model, lamps) + _tail(model, lamps or brakes))


def car_size(name: str) -> tuple[float, float, float]:
    """Half length, half width and height in metres."""
    model = MODELS[name]
    return model.body[1][0], model.body[3][2], model.cabin[1][1]
