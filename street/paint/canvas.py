"""The canvas: one call draws colour and class into four channels, so that the label always fits the picture."""

from dataclasses import dataclass

import cv2
import numpy as np

from steadyseg.core.classes import CAMVID
from steadyseg.street.paint.camera import NEAR_M, StreetCamera
from steadyseg.street.paint.light import Color, Light
from steadyseg.street.paint.texture import CLEAR, Texture

SKY, BUILDING, POLE, ROAD, PAVEMENT, TREE, SIGN, FENCE, CAR, PEDESTRIAN, BICYCLIST = range(len(CAMVID))
"""CamVid's class ids by name."""
OVERSAMPLING = 2
"""Canvas pixels per picture pixel; picture pixel (r, c) has its centre on canvas pixel (2r, 2c)."""
_FRACTION_BITS = 4
_REACH = 20000.0
"""Canvas coordinates are cut here: far outside the picture, well inside the rasteriser's fixed-point range."""


def fixed_point(coordinates: np.ndarray) -> np.ndarray:
    """Canvas coordinates as the rasteriser's integers."""
    return np.rint(np.clip(coordinates, -_REACH, _REACH) * (1 << _FRACTION_BITS)).astype(np.int32)


@dataclass(frozen=True)
class Limb:
    """A round rod through points of the figure, or a ball if there is one point."""

    points: tuple[tuple[float, float, float], ...]
    width: float
    """Diameter in metres."""
    color: Color
    closed: bool = False


class Canvas:
    """Draws world geometry back to front through one camera, in one light."""

    def __init__(self, camera: StreetCamera, light: Light) -> None:
        self.camera = camera
        self.light = light
        self.pixels = np.zeros((camera.rows, camera.width, 4), np.uint8)  # red, green, blue, class id

    def depth(self, station: float) -> float:
        return max(station - self.camera.station, NEAR_M)

    def sees(self, coordinates: np.ndarray) -> bool:
        """True if the bounding box of the canvas coordinates (N, 2) touches the picture."""
        left, top = coordinates.min(0).tolist()
        right, bottom = coordinates.max(0).tolist()
        return right >= 0 and left < self.camera.width and bottom >= 0 and top < self.camera.rows

    def fill(self, fixed: np.ndarray, color: Color, label: int) -> None:
        """Draws a polygon of fixed-point canvas coordinates (N, 2); `color` includes light and haze."""
        cv2.fillPoly(self.pixels, [fixed], (*color, label), lineType=cv2.LINE_8, shift=_FRACTION_BITS)

    def polygon(self, points: np.ndarray, color: Color, label: int) -> None:
        """Draws a polygon of world points (N, 3); `color` includes light and haze."""
        coordinates = self.camera.project(points)
        if self.sees(coordinates):
            self.fill(fixed_point(coordinates), color, label)

    def limbs(self, limbs: list[Limb], points: np.ndarray, station: float, label: int) -> None:
        """Draws limbs in painter's order; `points` (N, 3) are the world points of all limbs, one after the other."""
        coordinates = self.camera.project(points)
        if not self.sees(coordinates):
            return
        depth = self.depth(station)
        scale, unit = self.camera.focal / depth, 1 << _FRACTION_BITS
        colors = self.light.soft(np.array([limb.color for limb in limbs]), depth).tolist()
        fixed, start = fixed_point(coordinates), 0
        for limb, color in zip(limbs, colors, strict=True):
            chain = fixed[start : start + len(limb.points)]
            start += len(limb.points)
            if len(chain) == 1:
                radius = max(round(0.5 * limb.width * scale * unit), 1)
                cv2.circle(
                    self.pixels, chain[0].tolist(), radius, (*color, label), cv2.FILLED, cv2.LINE_8, _FRACTION_BITS
                )
            else:
                thickness = min(max(round(limb.width * scale), 1), 255)
                cv2.polylines(self.pixels, [chain], limb.closed, (*color, label), thickness, cv2.LINE_8, _FRACTION_BITS)

    def textured(
        self, corners: np.ndarray, texture: Texture, normal: Color, depth: float, tint: Color = (1.0, 1.0, 1.0)
    ) -> None:
        """Draws a texture on a world quad (4, 3): top left, top right, bottom right, bottom left of the texture.
        `normal` gives its light, and `depth` in metres its haze."""
        quad = self.camera.project(corners)
        if not self.sees(quad):
            return
        left, top = np.maximum(np.floor(quad.min(0)).astype(int), 0)
        right, bottom = np.minimum(np.ceil(quad.max(0)).astype(int) + 1, (self.camera.width, self.camera.rows))
        width = max(np.linalg.norm(quad[1] - quad[0]), np.linalg.norm(quad[2] - quad[3]))
        height = max(np.linalg.norm(quad[3] - quad[0]), np.linalg.norm(quad[2] - quad[1]))
        source = cv2.transform(texture.reduced_to(float(width), float(height)), self.light.matrix(normal, depth, tint))
        rows, columns = source.shape[:2]
        edges = np.array(((0, 0), (columns, 0), (columns, rows), (0, rows)), np.float32) - 0.5
        target = (quad - (left, top)).astype(np.float32)
        to_canvas = cv2.getPerspectiveTransform(edges, target)
        size = (int(right - left), int(bottom - top))
        if texture.cutout:
            clear = (0, 0, 0, CLEAR)
            seen = cv2.warpPerspective(source, to_canvas, size, flags=cv2.INTER_NEAREST, borderValue=clear)
            mask = cv2.inRange(seen, (0, 0, 0, 0), (255, 255, 255, CLEAR - 1))
        else:  # one class throughout: colours may be interpolated, the class stays what it is
            seen = cv2.warpPerspective(source, to_canvas, size, flags=cv2.INTER_LINEAR, borderMode=cv2.BORDER_REPLICATE)
            mask = np.zeros(size[::-1], np.uint8)
            cv2.fillPoly(mask, [fixed_point(target)], 255, lineType=cv2.LINE_8, shift=_FRACTION_BITS)
        cv2.copyTo(seen, mask, self.pixels[top:bottom, left:right])

    def finish(self, blur: float) -> tuple[np.ndarray, np.ndarray]:
        """Returns the picture (H, W, 3), filtered around the canvas pixels that give its label, and the label."""
        label = self.pixels[::OVERSAMPLING, ::OVERSAMPLING, 3].copy()
        if blur > 0:  # binomial of five taps: the lens
            small = cv2.pyrDown(self.pixels)
        else:  # binomial of three taps: a pixel's own extent
            taps = np.array((0.25, 0.5, 0.25), np.float32)
            small = cv2.sepFilter2D(self.pixels, -1, taps, taps)[::OVERSAMPLING, ::OVERSAMPLING]
        return np.ascontiguousarray(small[..., :3]), label
