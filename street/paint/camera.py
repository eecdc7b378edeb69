"""The road's centreline, the ego car's motion along it, and the pinhole camera on its roof."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import TypeVar

import numpy as np

NEAR_M = 1.0
"""Nothing nearer is drawn: at this depth even the neighbouring lane has left the picture."""
FAR_M = 170.0
LANE_M = 1.7
"""Lateral distance of the lane centres from the centreline; traffic keeps left, as in CamVid."""

Option = TypeVar("Option")
_STREAMS = {"road": 1, "ego": 2, "light": 3, "sky": 4, "block": 5, "traffic": 6, "noise": 7, "texture": 8}


def generator(stream: str, seed: int, *index: int) -> np.random.Generator:
    """The random generator of one part of the street; each part has its own generator and needs no other part."""
    return np.random.default_rng((_STREAMS[stream], seed, *(value + (1 << 30) for value in index)))


def pick(random: np.random.Generator, options: Sequence[Option]) -> Option:
    """Draws one of the options, each equally often."""
    return options[int(random.integers(len(options)))]


@dataclass(frozen=True)
class Road:
    """Lateral position of the centreline over the station (metres along the street): two sines, radius from 230 m."""

    amplitudes_m: tuple[float, float]
    frequencies: tuple[float, float]
    """Frequencies of both sines in radians per metre."""
    phases: tuple[float, float]

    def lateral(self, station: np.ndarray | float) -> np.ndarray | float:
        waves = zip(self.amplitudes_m, self.frequencies, self.phases, strict=True)
        return sum(a * np.sin(w * station + p) for a, w, p in waves)

    def slope(self, station: float) -> float:
        waves = zip(self.amplitudes_m, self.frequencies, self.phases, strict=True)
        return sum(a * w * math.cos(w * station + p) for a, w, p in waves)


@lru_cache(maxsize=256)
def road(seed: int) -> Road:
    random = generator("road", seed)
    frequencies = 2 * np.pi / random.uniform((520, 210), (760, 290))
    curvatures = random.uniform((0.0017, 0.0004), (0.0032, 0.0011))
    amplitudes = curvatures / frequencies**2
    phases = random.uniform(0, 2 * np.pi, 2)
    return Road(tuple(amplitudes.tolist()), tuple(frequencies.tolist()), tuple(phases.tolist()))


@dataclass(frozen=True)
class StreetCamera:
    """A pinhole camera that looks along the road's tangent.

    World points are (lateral, height, station) in metres, lateral measured from the centreline. Pitch and yaw are small
    and enter as a shift of the principal point, so verticals stay vertical and every ground row has one depth.
    """

    road: Road
    station: float
    lateral: float
    height: float
    focal: float
    """Focal length in pixels of the canvas."""
    center_u: float
    horizon: float
    """Canvas row of the horizon."""
    width: int
    rows: int

    @cached_property
    def _bend_table(self) -> tuple[np.ndarray, np.ndarray]:
        depth = np.arange(0.0, FAR_M + 40.0)
        here, slope = self.road.lateral(self.station), self.road.slope(self.station)
        return depth, self.road.lateral(self.station + depth) - here - slope * depth

    def bend(self, depth: np.ndarray | float) -> np.ndarray:
        """Distance in metres of the centreline from the tangent at `depth` metres ahead; constant beyond the visible
        range.

        Interpolated linearly between whole metres, which errs by 0.4 mm.
        """
        return np.interp(depth, *self._bend_table)

    def project(self, points: np.ndarray) -> np.ndarray:
        """(N, 3) world points -> (N, 2) canvas coordinates u, v; points behind NEAR_M are moved to it."""
        depth = np.maximum(points[:, 2] - self.station, NEAR_M)
        scale = self.focal / depth
        u = self.center_u + scale * (points[:, 0] + self.bend(depth) - self.lateral)
        v = self.horizon + scale * (self.height - points[:, 1])
        return np.column_stack((u, v))

    @cached_property
    def ground_rows(self) -> tuple[int, np.ndarray]:
        """The first row of the ground, and the depths of this row and of each row below."""
        first = max(math.floor(self.horizon) + 1, 0)
        rows = np.arange(first, self.rows, dtype=np.float64)
        return first, self.focal * self.height / (rows - self.horizon)


@lru_cache(maxsize=256)
def _ego(seed: int) -> tuple[float, np.ndarray]:
    random = generator("ego", seed)
    return float(random.uniform(7.0, 9.5)), random.uniform(0, 2 * np.pi, 8)


def ego_speed(seed: int) -> float:
    """Mean speed in m/s."""
    return _ego(seed)[0]


def ego_station(seed: int, time_s: float) -> float:
    """Metres driven at `time_s`; the speed varies by about a tenth."""
    speed, phases = _ego(seed)
    return speed * time_s + 2.0 * math.sin(0.35 * time_s + phases[0])


def camera_at(seed: int, time_s: float, width: int, height: int) -> StreetCamera:
    """The camera for a canvas of `width` x `height` pixels: 58 degrees of view, 1.4 m above the road."""
    _, phase = _ego(seed)
    focal = 0.9 * max(width, height)
    pitch = 0.0022 * math.sin(5.3 * time_s + phase[1]) + 0.003 * math.sin(1.1 * time_s + phase[2])
    yaw = 0.012 * math.sin(0.5 * time_s + phase[3]) + 0.0015 * math.sin(4.1 * time_s + phase[4])
    return StreetCamera(
        road=road(seed),
        station=ego_station(seed, time_s),
        lateral=-LANE_M + 0.22 * math.sin(0.41 * time_s + phase[5]),
        height=1.4 + 0.012 * math.sin(6.1 * time_s + phase[6]),
        focal=focal,
        center_u=(width - 2) / 2 + focal * yaw,
        horizon=0.49 * (height - 2) + focal * pitch,
        width=width,
        rows=height,
    )
