"""Clips of the study of scene cuts: joined scenes, drives with flashes and tunnels, fades, lost and repeated frames."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import cv2
import numpy as np

from steadyseg.app.sources.open_source import open_source
from steadyseg.core.frame import Frame
from steadyseg.seg.data.camvid import open_split
from steadyseg.seg.street.drive import Street

STREETS = range(2000, 2060)
"""Seeds of the streets; the detector was chosen on 0 to 29."""
PLACES = (50, 1500, 4000)
"""Frame numbers at which parts of a street begin, kilometres apart."""
PART_FRAMES = 8
MOTORWAYS = ("udacity_solidWhiteRight.mp4", "udacity_vehicle_test_video.mp4")

Scene = list[tuple[np.ndarray, np.ndarray | None]]
"""Neighbouring frames (H, W, 3) uint8 with their labels (H, W) uint8, or None."""


def street_scene(seed: int, start: int, count: int = PART_FRAMES) -> Scene:
    return [(frame.image, frame.label) for frame in Street(seed=seed).frames(count, start)]


def val_stream(data: Path) -> Scene:
    """CamVid's val split, 101 frames at 15 Hz."""
    split = open_split(data / "camvid", "val")
    return [split[number] for number in range(len(split))]


def motorway(data: Path, name: str) -> Scene:
    """A motorway clip at the size of the other scenes; the sides are cut off."""
    with open_source(str(data / "video" / name)) as source:
        return [(cropped(frame.image), None) for frame in source]


def cropped(image: np.ndarray) -> np.ndarray:
    """(H, W, 3) -> its middle as (360, 480, 3)."""
    side = (image.shape[1] - image.shape[0] * 4 // 3) // 2
    return cv2.resize(image[:, side : image.shape[1] - side], (480, 360), interpolation=cv2.INTER_AREA)


def joined(scenes: Sequence[Scene]) -> tuple[list[Frame], set[int]]:
    """One stream without any mark, and the numbers of the frames at which a scene begins, but the first."""
    starts = set(np.cumsum([len(scene) for scene in scenes])[:-1].tolist())
    pairs = [pair for scene in scenes for pair in scene]
    return [Frame(image, number, number / 25, label) for number, (image, label) in enumerate(pairs)], starts


def lit_drive(seed: int, seconds: int) -> Iterator[tuple[np.ndarray, str]]:
    """A drive of 240x180 with a flash of one or two frames every 10 s and a tunnel of 3 s every 30 s, and the light it
    has."""
    generator = np.random.default_rng(seed)
    gain, flash_until, tunnel = 1.0, -1, 1.0
    for frame in Street(seed=seed, height=180, width=240).frames(25 * seconds):
        if frame.index % 250 == 125:
            gain, flash_until = generator.uniform(1.5, 3.0), frame.index + int(generator.integers(1, 3))
        if frame.index % 750 == 0:
            tunnel = generator.uniform(0.15, 0.5)
        inside = min(1.0, max(0.0, 2.0 - abs(frame.index % 750 - 300) / 25))  # half a second of entry and exit
        light = (1.0 + (tunnel - 1.0) * inside) * (gain if frame.index < flash_until else 1.0)
        name = "flash" if frame.index < flash_until else "tunnel" if inside else "plain"
        yield np.clip(frame.image * light, 0, 255).astype(np.uint8), name


def fade(first: Scene, second: Scene) -> list[np.ndarray]:
    """A cross-fade over all frames of two scenes of one length."""
    shares = np.linspace(0.0, 1.0, len(first))
    return [cv2.addWeighted(a, 1 - s, b, s, 0) for (a, _), (b, _), s in zip(first, second, shares, strict=True)]
