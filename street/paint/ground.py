"""Road, pavement and grass: one textured cross-section seen in perspective row by row, then shadows, light and haze."""

from functools import lru_cache
from itertools import pairwise

import cv2
import numpy as np

from steadyseg.street.paint.camera import LANE_M, generator
from steadyseg.street.paint.canvas import PAVEMENT, ROAD, TREE, Canvas
from steadyseg.street.paint.light import Color
from steadyseg.street.paint.texture import Texture, fractal_noise, labelled

KERB_M = 5.7
"""Half width of the road: two lanes of 3.5 m and parking along both kerbs."""
FRONT_M = 10.4
"""Lateral position of fronts and fences: the pavement is 4.7 m wide."""
HALF_WIDTH_M, PERIOD_M = 16.0, 16.0
TEXELS_PER_METRE = 40
VARIANTS = 3


def _across(low: float, high: float) -> slice:
    return slice(round((low + HALF_WIDTH_M) * TEXELS_PER_METRE), round((high + HALF_WIDTH_M) * TEXELS_PER_METRE))


def _asphalt(image: np.ndarray, random: np.random.Generator) -> None:
    road = image[:, _across(-KERB_M, KERB_M)]
    rows, columns = road.shape[:2]
    tone = 1 + 0.05 * random.standard_normal((rows, columns)) + 0.03 * fractal_noise(random, rows, columns, 12)
    lateral = np.linspace(-KERB_M, KERB_M, columns)
    for lane in (-LANE_M, LANE_M):  # tyres polish two bands, oil darkens the middle
        for wheel in (-0.75, 0.75):
            tone += 0.06 * np.exp(-(((lateral - lane - wheel) / 0.28) ** 2))
        tone -= 0.05 * np.exp(-(((lateral - lane) / 0.3) ** 2))
    tone -= 0.22 * np.exp(-(((np.abs(lateral) - KERB_M) / 0.3) ** 2))
    road[:] = np.array((112, 111, 113)) * tone[..., None]
    seams = np.zeros((rows, columns), np.uint8)
    for _ in range(7):  # cracks
        start = random.uniform((0, 0), (columns, rows))
        steps = np.cumsum(random.normal(0, (14, 26), (9, 2)), axis=0) + start
        cv2.polylines(seams, [np.rint(steps).astype(np.int32)], False, 1, 1)
    road[seams > 0] *= 0.72


def _paving(image: np.ndarray, random: np.random.Generator, variant: int) -> None:
    slab = (24, 16, 32)[variant]  # texels: 0.6, 0.4 and 0.8 m
    base = np.array(((168, 162, 152), (158, 150, 144), (176, 172, 166))[variant])
    for low, high in ((-FRONT_M, -KERB_M), (KERB_M, FRONT_M)):
        area = image[:, _across(low, high)]
        rows, columns = area.shape[:2]
        tones = random.normal(1, 0.05, (rows // slab + 1, columns // slab + 1))
        tones = np.repeat(np.repeat(tones, slab, 0), slab, 1)[:rows, :columns]
        tones = tones + 0.03 * random.standard_normal((rows, columns)) + 0.03 * fractal_noise(random, rows, columns, 5)
        area[:] = base * tones[..., None]
        area[::slab] *= 0.8
        area[:, ::slab] *= 0.8


def _grass(image: np.ndarray, random: np.random.Generator) -> None:
    for low, high in ((-HALF_WIDTH_M, -FRONT_M), (FRONT_M, HALF_WIDTH_M)):
        area = image[:, _across(low, high)]
        rows, columns = area.shape[:2]
        tone = 1 + 0.12 * random.standard_normal((rows, columns)) + 0.1 * fractal_noise(random, rows, columns, 8)
        area[:] = np.array((100, 122, 62)) * tone[..., None]


def _paint(image: np.ndarray, random: np.random.Generator, variant: int) -> None:
    """Paints worn centre dashes, parking bays and, in some streets, double yellow lines."""

    def line(low: float, high: float, start: float, end: float, color: Color) -> None:
        area = image[round(start * TEXELS_PER_METRE) : round(end * TEXELS_PER_METRE), _across(low, high)]
        wear = np.clip(random.normal(0.86, 0.1, area.shape[:2]), 0.4, 1)[..., None]
        area[:] = area * (1 - wear) + np.array(color) * wear

    white: Color = (226, 226, 220)
    for start in (0.0, 8.0):
        line(-0.07, 0.07, start, start + 4.5, white)
    if variant == 1:
        for side in (-1, 1):
            for near in (KERB_M - 0.35, KERB_M - 0.6):
                low, high = sorted((side * near, side * (near + 0.1)))
                line(low, high, 0.0, PERIOD_M, (220, 186, 60))
        return
    for side in (-1, 1):
        low, high = sorted((side * 3.65, side * 3.75))
        for start in np.arange(0.0, PERIOD_M, 2.0):
            line(low, high, float(start), float(start) + 1.0, white)


@lru_cache(maxsize=VARIANTS)
def cross_section(variant: int) -> Texture:
    """The texture (along, across) of PERIOD_M of street. Road, Pavement and Tree (grass) are neighbours in the class
    list too, so an interpolated class is one of the two classes at an edge."""
    random = generator("texture", 70, variant)
    shape = (round(PERIOD_M * TEXELS_PER_METRE), round(2 * HALF_WIDTH_M * TEXELS_PER_METRE))
    image = np.zeros((*shape, 3), np.float32)
    _asphalt(image, random)
    _paving(image, random, variant)
    _grass(image, random)
    _paint(image, random, variant)
    texels = labelled(image, TREE)
    texels[:, _across(-FRONT_M, FRONT_M), 3] = PAVEMENT
    texels[:, _across(-KERB_M, KERB_M), 3] = ROAD
    return Texture(texels)


def draw_ground(canvas: Canvas, variant: int) -> None:
    """Fills every row below the horizon, in bands of rows that share one reduction of the texture."""
    camera, (first, depths) = canvas.camera, canvas.camera.ground_rows
    if not len(depths):
        return
    texture = cross_section(variant)
    columns = np.arange(camera.width, dtype=np.float32) - np.float32(camera.center_u)
    width_m = depths / camera.focal  # width of one canvas pixel
    length_m = depths**2 / (camera.focal * camera.height)
    shifts = np.asarray(camera.lateral - camera.bend(np.minimum(depths, 400.0)), dtype=np.float64)
    wanted = np.stack((2 * HALF_WIDTH_M / width_m, PERIOD_M / length_m), axis=1)
    octaves = np.floor(np.log2(np.maximum(wanted, 1.0)))
    starts = [0, *(np.flatnonzero((np.diff(octaves, axis=0) != 0).any(1)) + 1).tolist(), len(depths)]
    for start, end in pairwise(starts):
        band = slice(start, end)
        source = texture.reduced_to(*wanted[(start + end) // 2].tolist())
        rows, across = source.shape[:2]
        padded = np.concatenate((source, source[:1]))  # so that interpolation closes the period
        per_metre = across / (2 * HALF_WIDTH_M)
        x = (shifts[band, None] + HALF_WIDTH_M).astype(np.float32) + width_m[band, None].astype(np.float32) * columns
        y = ((camera.station + depths[band]) % PERIOD_M) * (rows / PERIOD_M)
        map_x, map_y = x * np.float32(per_metre) - 0.5, np.repeat(y[:, None].astype(np.float32), camera.width, axis=1)
        seen = cv2.remap(padded, map_x, map_y, cv2.INTER_LINEAR, borderMode=cv2.BORDER_REPLICATE)
        canvas.pixels[first + start : first + end] = seen


class Shadows:
    """A mask of the shadows on the ground, at half the picture's size."""

    def __init__(self, canvas: Canvas) -> None:
        self.canvas = canvas
        self.mask = np.full((canvas.camera.rows // 2, canvas.camera.width // 2), 255, np.uint8)

    def cast(self, outline: np.ndarray, strength: float = 1.0) -> None:
        """Darkens a ground polygon (N, 2) of (lateral, station)."""
        points = np.column_stack((outline[:, 0], np.zeros(len(outline)), outline[:, 1]))
        coordinates = self.canvas.camera.project(points)
        if self.canvas.sees(coordinates):
            fixed = np.rint(np.clip(coordinates, -20000, 20000) * 8).astype(np.int32)
            cv2.fillPoly(self.mask, [fixed], 255 * (1 - strength), lineType=cv2.LINE_AA, shift=4)

    def apply(self) -> None:
        """Multiplies the ground by the light that reaches it and adds the haze; the class channel stays."""
        canvas, light = self.canvas, self.canvas.light
        first, depths = canvas.camera.ground_rows
        if not len(depths):
            return
        ground = canvas.pixels[first:]
        mask = cv2.resize(self.mask, (canvas.camera.width, canvas.camera.rows), interpolation=cv2.INTER_LINEAR)[first:]
        ambient, sun = np.array(light.mood.ambient), np.array(light.mood.sun) * light.to_sun[1]
        unit = 127.0  # 2.0 still fits into a byte
        table = np.zeros((4, 2))
        table[:3, 0], table[:3, 1], table[3, 1] = sun * unit / 255, ambient * unit, unit
        gain = cv2.transform(mask, table)
        cv2.multiply(ground, gain, ground, 1 / unit)
        share = light.haze(depths)[:, None].astype(np.float32)
        far = int(np.searchsorted(-depths, -10.0))  # rows beyond ten metres
        if far:
            colors = ground[:far, :, :3].astype(np.float32)
            colors += (light.haze_color.astype(np.float32) - colors) * share[:far, :, None]
            ground[:far, :, :3] = colors
