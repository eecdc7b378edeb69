"""A procedural street seen from a moving car: endless labelled video that needs no file and no network."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

import cv2
import numpy as np

from steadyseg.core.errors import InputError
from steadyseg.core.frame import Frame
from steadyseg.street.layout import BLOCK_M, Block, block, town
from steadyseg.street.paint.camera import FAR_M, NEAR_M, StreetCamera, camera_at, generator
from steadyseg.street.paint.canvas import OVERSAMPLING, PAVEMENT, ROAD, Canvas
from steadyseg.street.paint.ground import KERB_M, Shadows, draw_ground
from steadyseg.street.paint.light import light_of
from steadyseg.street.paint.sky import draw_sky, draw_skyline
from steadyseg.street.things import Fixture, Panel, Thing, Vehicle, Walker
from steadyseg.street.traffic import moving

SMALLEST, LARGEST = 32, 4096
SMALL_M = 110.0
"""Beyond this, people, posts and fences are a few pixels in the haze."""
LONGEST_M = 6.0
"""A bus beside the camera is in sight until its middle is this far behind."""
OUTWARD = 1.2
"""A metre to the side counts as this many metres of distance in the order of drawing. At a smaller weight a
pedestrian would cover the parked car before him. At a larger one a car would cover the inner wall of a bend."""
SHADOW_M = 75.0
"""Shadows beyond this lie within a few rows of the horizon."""
LOOKS = 12
"""Pictures from one street: it takes longer to make a street (0.2 s) than to draw a picture of it (0.04 s)."""
HELD_OUT = 20
"""The last of every 20 streets is held out."""
STEP_FRAMES = 40
"""Frames between two looks, at 25 frames/s: by then most of the picture is new."""


@dataclass(frozen=True)
class Street:
    """An endless labelled sequence with the 11 CamVid classes; every frame follows from the seed and its index alone.

    The label of a pixel is the class of the surface on its centre. Blur and noise touch the picture only.
    """

    seed: int = 0
    height: int = 360
    width: int = 480
    fps: float = 25.0
    noise: float = 1.0
    """Sensor noise; 1 is a deviation of about 2.5 grey levels."""
    blur: float = 1.0
    """Lens and motion blur; 0 switches both off."""

    def __post_init__(self) -> None:
        if self.seed < 0:
            raise InputError(f"a street's seed must be 0 or more, got {self.seed}")
        for name, size in (("height", self.height), ("width", self.width)):
            if not SMALLEST <= size <= LARGEST:
                raise InputError(f"a street's {name} must lie in {SMALLEST}..{LARGEST} pixels, got {size}")
        if not (math.isfinite(self.fps) and self.fps > 0):
            raise InputError(f"a street's fps must be above 0, got {self.fps}")
        if not (0 <= self.noise <= 20 and 0 <= self.blur <= 20):
            raise InputError(f"a street's noise and blur must lie in 0..20, got {self.noise} and {self.blur}")

    def frame(self, index: int) -> Frame:
        """Frame `index` from 0; it needs no other frame. Raises InputError when the index is negative."""
        if index < 0:
            raise InputError(f"a frame index must be 0 or more, got {index}")
        time_s = index / self.fps
        canvas = self._canvas(time_s)
        image, label = canvas.finish(self.blur)
        if self.blur > 0:
            image = _motion_blur(image, canvas, self.blur)
        if self.noise > 0:
            raw = np.frombuffer(generator("noise", self.seed, index).bytes(image.size), np.uint8).reshape(image.shape)
            image = cv2.addWeighted(image, 1.0, cv2.LUT(raw, _noise_table(self.noise)), 1.0, -128.0)
        return Frame(image=image, index=index, time_s=time_s, label=label, discontinuity=index == 0)

    def frames(self, count: int, start: int = 0) -> Iterator[Frame]:
        """`count` frames from `start` on."""
        return map(self.frame, range(start, start + count))

    def _canvas(self, time_s: float) -> Canvas:
        """Draws the whole scene from back to front."""
        width, height = OVERSAMPLING * self.width, OVERSAMPLING * self.height
        canvas = Canvas(camera_at(self.seed, time_s, width, height), light_of(self.seed))
        station = canvas.camera.station
        first, last = math.floor((station - BLOCK_M) / BLOCK_M), math.floor((station + FAR_M) / BLOCK_M)
        blocks = [block(self.seed, index) for index in range(first, last + 1)]
        standing: list[Thing] = [thing for part in blocks for thing in part.things]
        things = [thing for thing in standing + moving(self.seed, time_s) if _in_sight(thing, canvas.camera)]
        draw_sky(canvas, self.seed)
        draw_skyline(canvas, self.seed)
        draw_ground(canvas, town(self.seed).ground)
        for part in blocks:
            _draw_crossing(canvas, part)
        shadows = Shadows(canvas)
        for thing in things:
            if thing.far < station + SHADOW_M:
                thing.shade(shadows)
        shadows.apply()
        _draw_kerbs(canvas)
        # Lines of sight lead away from the camera's lane, so a thing further out never hides a thing further in.
        lane = canvas.camera.lateral
        for thing in sorted(things, key=lambda one: one.far + OUTWARD * abs(one.lateral - lane), reverse=True):
            thing.draw(canvas, time_s)
        return canvas


class StreetSet:
    """`count` labelled pictures from count / 12 streets; equal arguments give equal pictures."""

    def __init__(self, count: int = 1200, height: int = 180, width: int = 240, first_seed: int = 1000) -> None:
        if count < 1:
            raise InputError(f"a street set needs one picture or more, got {count}")
        self.count, self.height, self.width, self.first_seed = count, height, width, first_seed

    def __len__(self) -> int:
        return self.count

    def held_out(self) -> tuple[int, ...]:
        """Returns the indices of the pictures of every twentieth street."""
        return tuple(index for index in range(self.count) if index // LOOKS % HELD_OUT == HELD_OUT - 1)

    def __getitem__(self, index: int) -> tuple[np.ndarray, np.ndarray]:
        """(H, W, 3) uint8 image and (H, W) uint8 label of picture `index`."""
        street = Street(seed=self.first_seed + index // LOOKS, height=self.height, width=self.width)
        frame = street.frame(STEP_FRAMES * (index % LOOKS) + 1)
        assert frame.label is not None
        return frame.image, frame.label


def _in_sight(thing: Thing, camera: StreetCamera) -> bool:
    behind = LONGEST_M if isinstance(thing, Vehicle) else -NEAR_M
    reach = SMALL_M if isinstance(thing, Walker | Fixture | Panel) else FAR_M
    return -behind < thing.far - camera.station < reach


def _draw_crossing(canvas: Canvas, part: Block) -> None:
    """Draws white stripes along the street and the give-way line before them, unlit, since the ground is lit later."""
    if part.crossing is None or not NEAR_M < part.crossing - 3.2 - canvas.camera.station < FAR_M:
        return
    stripes = [(x, x + 0.55, part.crossing - 1.6, part.crossing + 1.6) for x in np.arange(-KERB_M + 0.3, KERB_M, 1.1)]
    lines = [(x, x + 0.5, part.crossing - 2.7, part.crossing - 2.4) for x in np.arange(-KERB_M + 0.3, 0, 0.8)]
    for left, right, low, high in stripes + lines:
        quad = np.array(((left, 0, low), (right, 0, low), (right, 0, high), (left, 0, high)), np.float64)
        canvas.polygon(quad, (218, 218, 212), ROAD)


def _draw_kerbs(canvas: Canvas) -> None:
    """Draws the kerbstones of both pavements: the face towards the road and the lighter top."""
    depths = np.geomspace(2.0, FAR_M, 29)
    for side in (-1, 1):
        for low, high, across, normal, tone in (
            (0.0, 0.11, 0.0, (-side, 0, 0), 150),
            (0.11, 0.11, 0.16, (0, 1, 0), 186),
        ):
            lit = np.full((1, 3), tone) * canvas.light.falling_on(np.array([normal], np.float64))
            for first in range(24, -1, -4):  # pieces short enough for one haze
                piece = depths[first : first + 5]
                stations, ends = canvas.camera.station + piece, np.ones(len(piece))
                inner = np.stack((ends * side * KERB_M, ends * low, stations), axis=1)
                outer = np.stack((ends * side * (KERB_M + across), ends * high, stations), axis=1)
                color = canvas.light.hazed(lit, float(piece.mean()))[0]
                canvas.polygon(np.concatenate((inner, outer[::-1])), tuple(color.tolist()), PAVEMENT)


def _motion_blur(image: np.ndarray, canvas: Canvas, strength: float) -> np.ndarray:
    """The mean of three exposures, each enlarged a little about the vanishing point, since the car drives forward."""
    u, v = canvas.camera.center_u / OVERSAMPLING, canvas.camera.horizon / OVERSAMPLING
    rows, columns = image.shape[:2]

    def exposure(zoom: float) -> np.ndarray:
        to_picture = np.array(((zoom, 0, u * (1 - zoom)), (0, zoom, v * (1 - zoom))))
        return cv2.warpAffine(image, to_picture, (columns, rows), borderMode=cv2.BORDER_REPLICATE)

    step = 0.0035 * strength
    ends = cv2.addWeighted(exposure(1 + step), 0.5, exposure(1 - step), 0.5, 0)
    return cv2.addWeighted(image, 0.4, ends, 0.6, 0)


@lru_cache(maxsize=8)
def _noise_table(strength: float) -> np.ndarray:
    """256 equally likely values of a normal distribution, offset by 128: random bytes become noise by one look-up."""
    uniform = (np.arange(256) + 0.5) / 256
    grid = np.linspace(-4, 4, 2001)
    cumulative = 0.5 * (1 + np.array([math.erf(value / math.sqrt(2)) for value in grid]))
    normal = np.interp(uniform, cumulative, grid)
    return np.clip(np.rint(128 + 2.5 * strength * normal), 0, 255).astype(np.uint8)
