"""Time of day: direction and colours of sun and sky, and the haze in the distance."""

import math
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np

from steadyseg.street.paint.camera import generator

Color = tuple[float, float, float]
"""RGB, 0..255 for surfaces and 0..1 and a little more for light."""

HAZE_FREE_M = 10.0


def read_triples(text: str) -> tuple[Color, ...]:
    """Reads colours or other triples of numbers, `red green blue` between commas."""
    return tuple((float(one), float(two), float(three)) for one, two, three in map(str.split, text.split(",")))


def scaled(color: Color, gain: float) -> Color:
    return (color[0] * gain, color[1] * gain, color[2] * gain)


@dataclass(frozen=True)
class Mood:
    """A time of day. Colours are display values, and the colours of surfaces are multiplied by the light's."""

    elevation_deg: float
    sun: Color
    ambient: Color
    zenith: Color
    horizon: Color
    haze_m: float
    """Distance over which contrast falls to 1/e."""
    clouds: float
    """Cloud cover from 0 (clear) to 1 (overcast)."""
    lamps: bool = False
    """True: headlights and windows are lit."""


MOODS = (
    Mood(46, (0.80, 0.75, 0.64), (0.56, 0.59, 0.66), (66, 122, 198), (190, 214, 236), 260, 0.42),
    Mood(20, (1.02, 0.74, 0.42), (0.52, 0.51, 0.59), (98, 132, 186), (252, 214, 160), 190, 0.38),
    Mood(60, (0.10, 0.10, 0.10), (0.80, 0.82, 0.86), (168, 176, 186), (222, 226, 230), 210, 0.95),
    Mood(33, (0.82, 0.73, 0.56), (0.52, 0.55, 0.63), (92, 148, 212), (226, 228, 226), 230, 0.55),
    Mood(24, (0.42, 0.38, 0.31), (0.64, 0.66, 0.70), (172, 190, 206), (228, 228, 224), 95, 0.60),
    Mood(12, (0.50, 0.27, 0.20), (0.52, 0.50, 0.62), (62, 76, 132), (250, 176, 136), 150, 0.50, lamps=True),
)


@dataclass(frozen=True, eq=False)
class Light:
    """The mood of one seed with the sun's direction."""

    mood: Mood
    to_sun: np.ndarray
    """(3,) unit vector: right, up, forward."""

    @cached_property
    def haze_color(self) -> np.ndarray:
        return 0.25 * np.array(self.mood.zenith) + 0.75 * np.array(self.mood.horizon)

    def haze(self, depth: np.ndarray | float) -> np.ndarray:
        """Share of haze in the colour of things at `depth` metres, 0..1."""
        return 1.0 - np.exp(-np.maximum(np.asarray(depth) - HAZE_FREE_M, 0.0) / self.mood.haze_m)

    def falling_on(self, normals: np.ndarray) -> np.ndarray:
        """(N, 3) unit normals -> (N, 3) light: less skylight on what faces down, sunlight on what faces the sun."""
        facing_sun = np.maximum(normals @ self.to_sun, 0.0)[:, None]
        sky_share = (0.86 + 0.14 * normals[:, 1])[:, None]
        return sky_share * np.array(self.mood.ambient) + facing_sun * np.array(self.mood.sun)

    def shade(self, colors: np.ndarray, normals: np.ndarray, depth: float) -> np.ndarray:
        """(N, 3) surface colours -> (N, 3) seen colours at `depth` metres."""
        return self.hazed(colors * self.falling_on(normals), depth)

    def soft(self, colors: np.ndarray, depth: float) -> np.ndarray:
        """(N, 3) seen colours of round things (limbs, tubes), which have no single normal."""
        light = 0.95 * np.array(self.mood.ambient) + 0.5 * np.array(self.mood.sun)
        return self.hazed(colors * light, depth)

    def hazed(self, lit: np.ndarray, depth: float) -> np.ndarray:
        """(N, 3) lit colours as seen at `depth` metres."""
        share = float(self.haze(depth))
        return np.minimum(lit, 255.0) * (1 - share) + share * self.haze_color

    def matrix(self, normal: Color, depth: float, tint: Color) -> np.ndarray:
        """(4, 5) affine map of RGB + label that applies light and haze to a texture and keeps the label channel."""
        share = float(self.haze(depth))
        gain = self.falling_on(np.array([normal]))[0] * np.array(tint) * (1 - share)
        table = np.zeros((4, 5))
        table[(0, 1, 2, 3), (0, 1, 2, 3)] = (*gain, 1.0)
        table[:3, 4] = share * self.haze_color
        return table

    def shadow_offset(self, height: float) -> tuple[float, float]:
        """The (lateral, station) offset in metres of the shadow of a point `height` metres above the ground."""
        reach = min(height / self.to_sun[1], 30.0)
        return -self.to_sun[0] * reach, -self.to_sun[2] * reach


@lru_cache(maxsize=256)
def light_of(seed: int) -> Light:
    """The light of a seed. Neighbouring seeds have other times of day; the sun is beside or behind the camera."""
    random = generator("light", seed)
    mood = MOODS[seed % len(MOODS)]
    elevation = math.radians(mood.elevation_deg + random.uniform(-3, 3))
    azimuth = math.radians(random.uniform(105, 158)) * random.choice((-1, 1))
    level = math.cos(elevation)
    return Light(mood, np.array((level * math.sin(azimuth), math.sin(elevation), level * math.cos(azimuth))))
