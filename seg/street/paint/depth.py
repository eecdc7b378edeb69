"""A canvas that also keeps depths: metres along the camera's axis, for every pixel of the label."""

import cv2
import numpy as np

from steadyseg.seg.street.paint.camera import NEAR_M, StreetCamera
from steadyseg.seg.street.paint.canvas import _FRACTION_BITS, OVERSAMPLING, Canvas, Limb, fixed_point
from steadyseg.seg.street.paint.light import Color, Light


class DepthCanvas(Canvas):
    """Draws as `Canvas` does; `metres` (rows, width) float32 has the depth, infinity for sky and skyline.

    The inverse depth of a plane is affine in the picture, so each flat face is one plane through its corners. People
    and posts have the depth of their place.
    """

    def __init__(self, camera: StreetCamera, light: Light) -> None:
        super().__init__(camera, light)
        first, depths = self.ground_rows
        self.metres = np.full((camera.rows, camera.width), np.inf, np.float32)
        self.metres[first:] = depths[:, None]

    def polygon(self, points: np.ndarray, color: Color, label: int) -> None:
        super().polygon(points, color, label)
        self.keep_plane(self.camera.project(points), points[:, 2] - self.camera.station)

    def limbs(self, limbs: list[Limb], points: np.ndarray, station: float, label: int) -> None:
        before = self.pixels
        self.pixels = np.zeros_like(before)
        self.pixels[..., 3] = 255
        super().limbs(limbs, points, station, label)
        drawn, self.pixels = self.pixels, before
        mask = (drawn[..., 3] != 255).astype(np.uint8)
        cv2.copyTo(drawn, mask, self.pixels)
        self.metres[mask > 0] = self.depth(station)

    def keep_mask(self, mask: np.ndarray, corner: tuple[int, int], quad: np.ndarray, points: np.ndarray) -> None:
        self._keep(mask > 0, corner, quad, points[:, 2] - self.camera.station)

    def keep_plane(self, coordinates: np.ndarray, depths: np.ndarray) -> None:
        """Keeps the depth of a flat polygon of canvas coordinates (N, 2) with corners of these depths."""
        if not self.sees(coordinates):
            return
        left, top = np.maximum(np.floor(coordinates.min(0)).astype(int), 0)
        right, bottom = np.minimum(np.ceil(coordinates.max(0)).astype(int) + 1, (self.camera.width, self.camera.rows))
        mask = np.zeros((max(bottom - top, 0), max(right - left, 0)), np.uint8)
        if mask.size:
            shifted = fixed_point(coordinates - (left, top))
            cv2.fillPoly(mask, [shifted], 1, lineType=cv2.LINE_8, shift=_FRACTION_BITS)
            self._keep(mask > 0, (int(left), int(top)), coordinates, depths)

    def _keep(self, mask: np.ndarray, corner: tuple[int, int], coordinates: np.ndarray, depths: np.ndarray) -> None:
        """Writes the plane through the corners where the mask is set, within the range of their depths."""
        depths = np.maximum(depths, NEAR_M)
        low, high = float(depths.min()), float(depths.max())
        target = self.metres[corner[1] : corner[1] + mask.shape[0], corner[0] : corner[0] + mask.shape[1]]
        if high - low < 1e-3:
            target[mask] = low
            return
        terms = np.column_stack((coordinates, np.ones(len(coordinates))))
        (u, v, constant), *_ = np.linalg.lstsq(terms, 1.0 / depths, rcond=None)
        rows, columns = np.nonzero(mask)
        inverse = u * (columns + corner[0]) + v * (rows + corner[1]) + constant
        target[rows, columns] = 1.0 / np.clip(inverse, 1.0 / high, 1.0 / low)

    def finished_metres(self) -> np.ndarray:
        """Returns the depth (H, W) float32 at the pixels that give the label."""
        return self.metres[::OVERSAMPLING, ::OVERSAMPLING].copy()
