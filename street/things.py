"""The things that a layout places; each has a far end, draws itself and casts its shadow on the ground."""

from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import Protocol

import cv2
import numpy as np

from steadyseg.street.paint.canvas import BUILDING, Canvas
from steadyseg.street.paint.cars import car_size
from steadyseg.street.paint.facades import Facade, facade
from steadyseg.street.paint.fences import HEIGHTS_M, LENGTH_M, fence_texture
from steadyseg.street.paint.ground import Shadows
from steadyseg.street.paint.light import Color
from steadyseg.street.paint.mesh import Mesh, box, draw_mesh, mesh
from steadyseg.street.paint.people import Person, Stance, draw_bicyclist, draw_pedestrian
from steadyseg.street.paint.plants import COLUMNS, ROWS, SPECIES, hedge_texture, tree_texture

ROOFS: tuple[Color, ...] = ((92, 92, 100), (124, 76, 62), (108, 98, 92), (140, 92, 72))
HOUSE_DEPTH_M = 9.0


class Thing(Protocol):
    """Something with a place, drawn from back to front."""

    @property
    def lateral(self) -> float:
        """Metres to the right of the centreline."""

    @property
    def far(self) -> float:
        """Station of the far end; for short things, of the middle."""

    def draw(self, canvas: Canvas, time_s: float) -> None: ...

    def shade(self, shadows: Shadows) -> None: ...


class Short:
    """A thing whose far end is its middle, the station."""

    station: float

    @property
    def far(self) -> float:
        return self.station


class Long:
    """A thing that reaches from one station to another."""

    start: float
    end: float

    @property
    def far(self) -> float:
        return self.end

    @property
    def middle(self) -> float:
        return 0.5 * (self.start + self.end)


def _throw(shadows: Shadows, base: np.ndarray, height: float) -> None:
    """Casts the shadow of an upright prism over the ground polygon `base` (N, 2)."""
    offset = np.array(shadows.canvas.light.shadow_offset(height))
    hull = cv2.convexHull(np.concatenate((base, base + offset)).astype(np.float32))
    shadows.cast(hull[:, 0])


def _footprint(lateral: float, station: float, half_width: float, half_length: float) -> np.ndarray:
    low, high = lateral - half_width, lateral + half_width
    near, far = station - half_length, station + half_length
    return np.array(((low, near), (high, near), (high, far), (low, far)))


def _ellipse(lateral: float, station: float, half_width: float, half_length: float) -> np.ndarray:
    angles = np.linspace(0, 2 * np.pi, 14, endpoint=False)
    return np.stack((lateral + half_width * np.cos(angles), station + half_length * np.sin(angles)), axis=1)


@lru_cache(maxsize=64)
def _chimney(foot: float, height: float) -> Mesh:
    stack = box((-0.5, foot, -0.35), (0.5, foot + height, 0.35), (128, 88, 72), BUILDING)
    pots = [
        box((x - 0.14, foot + height, -0.14), (x + 0.14, foot + height + 0.5, 0.14), (164, 100, 72), BUILDING)
        for x in (-0.25, 0.25)
    ]
    return mesh(stack + pots[0] + pots[1])


@dataclass(frozen=True)
class Building(Long):
    """A front along the street, the wall at its near end, and a roof."""

    side: int
    lateral: float
    """Lateral position of the front in metres, with the sign of the side."""
    start: float
    end: float
    style: str
    variant: int
    tint: Color
    roof: Color
    bare: bool
    """True: the wall at the near end is visible above the neighbour."""

    def _world(self, points: list[tuple[float, float, float]]) -> np.ndarray:
        """World points of (metres behind the front, metres above the ground, metres along the road)."""
        return np.array([(self.lateral + self.side * back, height, station) for back, height, station in points])

    def draw(self, canvas: Canvas, time_s: float) -> None:
        front = facade(self.style, self.variant)
        depth = canvas.depth(self.middle)
        self._draw_roof(canvas, front, depth)
        if self.bare:
            self._draw_end(canvas, front)
        left, right = (self.start, self.end) if self.side < 0 else (self.end, self.start)
        points = [(0.0, front.height, left), (0.0, front.height, right), (0.0, 0.0, right), (0.0, 0.0, left)]
        canvas.textured(self._world(points), front.texture, (-self.side, 0.0, 0.0), depth, self.tint)

    def _surface(
        self, canvas: Canvas, points: list[tuple[float, float, float]], color: Color, normal: Color, depth: float
    ) -> None:
        """Draws a polygon of points as `_world` takes them."""
        tinted = np.array([color]) * np.array(self.tint)
        seen = canvas.light.shade(tinted, np.array([normal]), depth)[0]
        canvas.polygon(self._world(points), tuple(seen.tolist()), BUILDING)

    def _draw_roof(self, canvas: Canvas, front: Facade, depth: float) -> None:
        top, ridge, half = front.height, front.height + 2.8, 0.5 * HOUSE_DEPTH_M
        start, middle, end = self.start, self.middle, self.end
        if front.roof == "gable":
            slope = [(-0.3, top, start), (-0.3, ridge, middle), (2 * half, ridge, middle), (2 * half, top, start)]
            self._surface(canvas, slope, self.roof, (0.0, 0.7, -0.7), depth)
            gable = [(0.0, top, start), (0.0, ridge, middle), (0.0, top, end)]
            self._surface(canvas, gable, front.wall, (-self.side, 0.0, 0.0), depth)
        elif front.roof == "eaves":
            for station in (start + 0.6, end - 0.6):
                draw_mesh(canvas, _chimney(top, 2.8 + 1.1), self.lateral + self.side * half, station)
            slope = [(-0.25, top - 0.05, start), (-0.25, top - 0.05, end), (half, ridge, end), (half, ridge, start)]
            self._surface(canvas, slope, self.roof, (-0.53 * self.side, 0.85, 0.0), depth)

    def _draw_end(self, canvas: Canvas, front: Facade) -> None:
        top, z = front.height, self.start
        if front.roof == "eaves":
            triangle = [(0.0, top, z), (0.5 * HOUSE_DEPTH_M, top + 2.8, z), (HOUSE_DEPTH_M, top, z)]
            self._surface(canvas, triangle, front.wall, (0.0, 0.0, -1.0), canvas.depth(z))
        inner, outer = (HOUSE_DEPTH_M, 0.0) if self.side < 0 else (0.0, HOUSE_DEPTH_M)
        corners = self._world([(inner, top, z), (outer, top, z), (outer, 0.0, z), (inner, 0.0, z)])
        canvas.textured(corners, front.end, (0.0, 0.0, -1.0), canvas.depth(z), self.tint)

    def shade(self, shadows: Shadows) -> None:
        height = facade(self.style, self.variant).height
        base = _footprint(self.lateral + self.side * 1.0, self.middle, 1.0, 0.5 * (self.end - self.start))
        _throw(shadows, base, height)


@dataclass(frozen=True)
class Panel(Long):
    """A piece of fence or hedge along the street."""

    kind: str
    """A key of fences.HEIGHTS_M, or `hedge`."""
    variant: int
    lateral: float
    start: float
    end: float

    @property
    def height(self) -> float:
        return 1.5 if self.kind == "hedge" else HEIGHTS_M[self.kind]

    def draw(self, canvas: Canvas, time_s: float) -> None:
        texture = hedge_texture(self.variant) if self.kind == "hedge" else fence_texture(self.kind, self.variant)
        points = [(self.height, self.start), (self.height, self.end), (0.0, self.end), (0.0, self.start)]
        corners = np.array([(self.lateral, height, station) for height, station in points])
        normal = (-1.0 if self.lateral > canvas.camera.lateral else 1.0, 0.0, 0.0)
        canvas.textured(corners, texture, normal, canvas.depth(self.middle))

    def shade(self, shadows: Shadows) -> None:
        _throw(shadows, _footprint(self.lateral, self.middle, 0.05, 0.5 * (self.end - self.start)), self.height)


def panels(kind: str, variant: int, lateral: float, start: float, end: float) -> list[Panel]:
    """A run of equal panels, each about as long as the texture."""
    count = max(round((end - start) / LENGTH_M), 1)
    edges = np.linspace(start, end, count + 1).tolist()
    return [Panel(kind, variant, lateral, low, high) for low, high in pairwise(edges)]


@dataclass(frozen=True)
class Tree(Short):
    """A tree that turns to the camera and sways a little."""

    species: str
    variant: int
    lateral: float
    station: float
    height: float
    tint: Color

    def draw(self, canvas: Canvas, time_s: float) -> None:
        half = 0.5 * self.height * COLUMNS / ROWS
        sway = 0.012 * self.height * np.sin(1.3 * time_s + self.station)
        flip = -1 if canvas.light.to_sun[0] < 0 else 1
        left, right, z = self.lateral - flip * half, self.lateral + flip * half, self.station
        corners = np.array(
            ((left + sway, self.height, z), (right + sway, self.height, z), (right, 0.0, z), (left, 0.0, z))
        )
        texture = tree_texture(self.species, self.variant)
        canvas.textured(corners, texture, (0.0, 1.0, 0.0), canvas.depth(z), self.tint)

    def shade(self, shadows: Shadows) -> None:
        light = shadows.canvas.light
        _throw(shadows, _footprint(self.lateral, self.station, 0.02 * self.height, 0.1), 0.5 * self.height)
        for ellipse in SPECIES[self.species][0]:
            right, up, half_width, half_height = (share * self.height for share in ellipse)
            across, along = light.shadow_offset(up)
            stretch = half_width + 0.5 * half_height * float(np.hypot(*light.shadow_offset(1.0)))
            shadows.cast(_ellipse(self.lateral + right + across, self.station + along, 0.9 * half_width, 0.8 * stretch))


@dataclass(frozen=True, eq=False)
class Fixture(Short):
    """A mesh that stands still: a sign, a lamp post, a bollard."""

    shape: Mesh
    lateral: float
    station: float
    height: float

    def draw(self, canvas: Canvas, time_s: float) -> None:
        draw_mesh(canvas, self.shape, self.lateral, self.station)

    def shade(self, shadows: Shadows) -> None:
        _throw(shadows, _footprint(self.lateral, self.station, 0.06, 0.06), self.height)


@dataclass(frozen=True, eq=False)
class Vehicle(Short):
    """A car, parked or driving; heading 1 shows its back, -1 its front."""

    shape: Mesh
    model: str
    lateral: float
    station: float
    heading: int

    def draw(self, canvas: Canvas, time_s: float) -> None:
        draw_mesh(canvas, self.shape if self.heading > 0 else self.shape.turned, self.lateral, self.station)

    def shade(self, shadows: Shadows) -> None:
        half_length, half_width, height = car_size(self.model)
        _throw(shadows, _footprint(self.lateral, self.station, half_width, half_length), 0.8 * height)


@dataclass(frozen=True)
class Walker(Short):
    """A pedestrian; `direction` in radians, 0 away from the camera."""

    person: Person
    lateral: float
    station: float
    direction: float
    phase: float

    def draw(self, canvas: Canvas, time_s: float) -> None:
        draw_pedestrian(canvas, self.person, Stance(self.lateral, self.station, self.direction), self.phase)

    def shade(self, shadows: Shadows) -> None:
        _throw(shadows, _ellipse(self.lateral, self.station, 0.2, 0.15), self.person.height)


@dataclass(frozen=True)
class Rider(Short):
    """A bicyclist; heading 1 rides away from the camera."""

    person: Person
    paint: Color
    lateral: float
    station: float
    heading: int
    phase: float

    def draw(self, canvas: Canvas, time_s: float) -> None:
        stance = Stance(self.lateral, self.station, 0.0 if self.heading > 0 else float(np.pi))
        draw_bicyclist(canvas, self.person, stance, self.phase, self.paint)

    def shade(self, shadows: Shadows) -> None:
        _throw(shadows, _footprint(self.lateral, self.station, 0.15, 0.8), 1.5)
