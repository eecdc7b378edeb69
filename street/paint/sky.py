"""Sky with clouds in perspective, and the far skyline that closes the street where buildings end."""

from functools import lru_cache

import cv2
import numpy as np

from steadyseg.street.paint.camera import generator
from steadyseg.street.paint.canvas import BUILDING, SKY, TREE, Canvas, fixed_point
from steadyseg.street.paint.light import Light, light_of
from steadyseg.street.paint.texture import fractal_noise

ROWS, COLUMNS = 200, 640
TOP, SIDE = 0.75, 1.3
"""Tangents of the highest and the outermost direction in the texture."""
FIELDS = 6


@lru_cache(maxsize=FIELDS)
def _cloud_field(variant: int) -> np.ndarray:
    """(ROWS, COLUMNS) noise of clouds in perspective: they flatten and shrink towards the horizon."""
    plane = fractal_noise(generator("texture", 60, variant), 1024, 1024, 9, 6)
    elevation = np.linspace(TOP, 0.0, ROWS, dtype=np.float32)[:, None] + 0.09
    azimuth = np.linspace(-SIDE, SIDE, COLUMNS, dtype=np.float32)[None]
    across = 512 + 105 * azimuth / elevation
    along = 60 + 70 / elevation + 0 * azimuth
    return cv2.remap(plane, across, along, cv2.INTER_LINEAR, borderMode=cv2.BORDER_REFLECT)


@lru_cache(maxsize=32)
def sky_texture(seed: int) -> np.ndarray:
    """The sky (ROWS, COLUMNS, 3) uint8 around the street's direction; the last row is the horizon."""
    light, random = light_of(seed), generator("sky", seed)
    mood = light.mood
    height = np.linspace(TOP, 0.0, ROWS, dtype=np.float32)[:, None, None]
    zenith, horizon = np.array(mood.zenith, np.float32), np.array(mood.horizon, np.float32)
    sky = horizon + (zenith - horizon) * (1 - np.exp(-3.2 * height)) + np.zeros((1, COLUMNS, 1), np.float32)
    field = _cloud_field(int(random.integers(FIELDS)))
    field = field[:, ::-1] if random.random() < 0.5 else field
    cover = np.clip((field + 2.6 * mood.clouds - 1.25) / 1.3, 0, 1)[..., None] * (
        0.35 + 0.65 * np.clip(height * 5, 0, 1)
    )
    white, base = np.minimum(horizon * 0.5 + 132, 255), horizon * 0.5 + zenith * 0.35 + 26
    depth = np.clip((field[..., None] - 0.5 + mood.clouds) / 2.2, 0, 1)
    clouds = white + (base - white) * depth
    sky += (clouds - sky) * cover * 0.9
    return np.clip(sky + _glow(light), 0, 255).astype(np.uint8)


def _glow(light: Light) -> np.ndarray:
    """Brightness around the sun, and of the bright haze on its side of the sky."""
    across, up, forward = light.to_sun.tolist()
    x = np.linspace(-SIDE, SIDE, COLUMNS, dtype=np.float32)[None]
    y = np.linspace(TOP, 0.0, ROWS, dtype=np.float32)[:, None]
    cosine = (x * across + y * up + forward) / np.sqrt(x * x + y * y + 1)
    veil = 40 * np.clip(cosine, 0, 1) ** 3 + 120 * np.exp(60 * (cosine - 1))
    return veil[..., None] * np.array(light.mood.sun, np.float32)


def draw_sky(canvas: Canvas, seed: int) -> None:
    """Fills every row down to the horizon."""
    camera, texture = canvas.camera, sky_texture(seed)
    last = min(max(int(np.ceil(camera.horizon)) + 1, 0), camera.rows)
    if not last:
        return
    scale_x, scale_y = (COLUMNS - 1) / (2 * SIDE), (ROWS - 1) / TOP
    heading = camera.road.slope(camera.station)
    to_texture = np.array(
        (
            (scale_x / camera.focal, 0.0, (heading - camera.center_u / camera.focal + SIDE) * scale_x),
            (0.0, scale_y / camera.focal, (TOP - camera.horizon / camera.focal) * scale_y),
        )
    )
    flags = cv2.INTER_LINEAR | cv2.WARP_INVERSE_MAP
    seen = cv2.warpAffine(texture, to_texture, (camera.width, last), flags=flags, borderMode=cv2.BORDER_REPLICATE)
    canvas.pixels[:last, :, :3] = seen
    canvas.pixels[:last, :, 3] = SKY


@lru_cache(maxsize=64)
def _skyline(seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Elevation (tangent) of far roofs and of far tree tops over the columns of the sky texture."""
    random = generator("sky", seed, 1)
    roofs = np.repeat(random.uniform(0.012, 0.05, COLUMNS // 10) * (random.random(COLUMNS // 10) < 0.7), 10)
    trees = 0.016 + 0.007 * fractal_noise(random, 2, COLUMNS, 40, 4)[0]
    return roofs, np.maximum(trees, 0.004)


def draw_skyline(canvas: Canvas, seed: int) -> None:
    """Draws far roofs behind far trees, both pale with haze."""
    camera, light = canvas.camera, canvas.light
    angles = np.linspace(-SIDE, SIDE, COLUMNS) - camera.road.slope(camera.station)
    u = camera.center_u + camera.focal * angles
    for profile, color, label, share in zip(
        _skyline(seed), ((150, 140, 132), (86, 104, 70)), (BUILDING, TREE), (0.72, 0.62), strict=True
    ):
        v = camera.horizon - camera.focal * profile
        foot = np.array(((u[-1], camera.horizon + 2), (u[0], camera.horizon + 2)))
        outline = np.concatenate((np.column_stack((u, v)), foot))
        lit = np.array(color) * np.array(light.mood.ambient)
        canvas.fill(fixed_point(outline), tuple((lit + (light.haze_color - lit) * share).tolist()), label)
