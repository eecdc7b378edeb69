"""Small flat-shaded meshes: convex parts listed in painter's order, one class per face."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache

import numpy as np

from steadyseg.street.paint.canvas import Canvas, fixed_point
from steadyseg.street.paint.light import Color, Light

Points = np.ndarray | list[tuple[float, float, float]]


@dataclass(frozen=True, eq=False)
class Face:
    """A flat polygon seen from the side of its normal."""

    points: np.ndarray
    """(N, 3) metres: right, up, forward."""
    color: Color
    label: int
    normal: np.ndarray
    glows: bool = False
    """True: the face has its own colour in any light."""


def face(points: Points, color: Color, label: int, facing: Color, glows: bool = False) -> Face:
    """Makes a face whose normal is on the side of the direction `facing`."""
    corners = np.asarray(points, dtype=np.float64)
    after = np.roll(corners, -1, axis=0)
    normal = np.cross(corners, after).sum(0)  # Newell: twice the area vector
    normal /= max(float(np.linalg.norm(normal)), 1e-9)
    return Face(corners, color, label, normal if normal @ np.array(facing) >= 0 else -normal, glows)


@dataclass(frozen=True, eq=False)
class Mesh:
    """Faces packed into arrays, so that a whole mesh is projected, culled and shaded at once."""

    vertices: np.ndarray
    faces: tuple[slice, ...]
    colors: np.ndarray
    normals: np.ndarray
    anchors: np.ndarray
    labels: tuple[int, ...]
    glows: np.ndarray
    extents: np.ndarray
    """Longest side of every face's bounding box in metres."""

    @cached_property
    def turned(self) -> "Mesh":
        """The mesh turned round, to face the camera."""
        turn = np.array((-1, 1, -1))
        return replace(self, vertices=self.vertices * turn, normals=self.normals * turn, anchors=self.anchors * turn)


def mesh(faces: Iterable[Face]) -> Mesh:
    parts = list(faces)
    ends = np.cumsum([len(part.points) for part in parts]).tolist()
    return Mesh(
        vertices=np.concatenate([part.points for part in parts]),
        faces=tuple(map(slice, [0, *ends], ends)),
        colors=np.array([part.color for part in parts], dtype=np.float64),
        normals=np.array([part.normal for part in parts]),
        anchors=np.array([part.points.mean(0) for part in parts]),
        labels=tuple(part.label for part in parts),
        glows=np.array([[part.glows] for part in parts]),
        extents=np.array([np.ptp(part.points, axis=0).max() for part in parts]),
    )


@lru_cache(maxsize=2048)
def _lit(shape: Mesh, light: Light) -> np.ndarray:
    """(F, 3) face colours before haze."""
    return shape.colors * light.falling_on(shape.normals)


def draw_mesh(canvas: Canvas, shape: Mesh, lateral: float, station: float) -> None:
    """Draws the faces turned to the camera in their listed order, without faces smaller than a canvas pixel."""
    camera = canvas.camera
    place = np.array((lateral, 0.0, station))
    coordinates = camera.project(shape.vertices + place)
    if not canvas.sees(coordinates):
        return
    depth = canvas.depth(station)
    eye = np.array((camera.lateral - float(camera.bend(depth)), camera.height, camera.station))
    visible = ((eye - place - shape.anchors) * shape.normals).sum(1) > 0
    visible &= shape.extents * camera.focal > depth
    colors = np.where(shape.glows, shape.colors, canvas.light.hazed(_lit(shape, canvas.light), depth)).tolist()
    fixed = fixed_point(coordinates)
    for index in np.flatnonzero(visible).tolist():
        canvas.fill(fixed[shape.faces[index]], colors[index], shape.labels[index])


def box(low: Color, high: Color, color: Color, label: int, glows: bool = False) -> list[Face]:
    """The six sides of an upright box between two corners."""
    (x0, y0, z0), (x1, y1, z1) = low, high
    return [
        face([(x0, y0, z1), (x1, y0, z1), (x1, y1, z1), (x0, y1, z1)], color, label, (0, 0, 1), glows),
        face([(x0, y0, z0), (x0, y0, z1), (x0, y1, z1), (x0, y1, z0)], color, label, (-1, 0, 0), glows),
        face([(x1, y0, z0), (x1, y0, z1), (x1, y1, z1), (x1, y1, z0)], color, label, (1, 0, 0), glows),
        face([(x0, y0, z0), (x1, y0, z0), (x1, y0, z1), (x0, y0, z1)], color, label, (0, -1, 0), glows),
        face([(x0, y1, z0), (x1, y1, z0), (x1, y1, z1), (x0, y1, z1)], color, label, (0, 1, 0), glows),
        face([(x0, y0, z0), (x1, y0, z0), (x1, y1, z0), (x0, y1, z0)], color, label, (0, 0, -1), glows),
    ]


def panel(outline: np.ndarray, forward: float, color: Color, label: int, facing: int = -1, glows: bool = False) -> Face:
    """An upright flat face: the outline (N, 2) of (right, up) at one forward position, to the camera (-1) or away."""
    points = np.column_stack((outline, np.full(len(outline), forward)))
    return face(points, color, label, (0, 0, facing), glows)


def ring(right: float, up: float, radius: float, corners: int = 16, start: float = 0.0) -> np.ndarray:
    """(corners, 2) points of a circle, or of a regular polygon whose first corner stands at angle `start`."""
    angles = start + np.linspace(0, 2 * np.pi, corners, endpoint=False)
    return np.stack((right + radius * np.cos(angles), up + radius * np.sin(angles)), axis=1)


def rectangle(left: float, low: float, right: float, high: float) -> np.ndarray:
    return np.array(((left, low), (right, low), (right, high), (left, high)))
