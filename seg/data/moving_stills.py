"""Moving stills: every labelled still becomes a clip that ends on it, so that what needs earlier frames is measured
there too.

A virtual camera drove up to where the still was taken: the frames before it are warps of the still, with sensor noise
and exposure of their own. Each frame is warped from the still at once (nothing is resampled twice); its label is warped
the same way, nearest neighbour, and void where the still shows nothing. What this cannot show: things that move by
themselves, parallax, and what comes into view. Its noise is fresh in every frame, where the still's own is warped with
it.
"""

import hashlib
import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from core.frame import Frame
from seg.data.camvid import VAL_FPS, ImageFolderSplit

CLIP_FRAMES = 7
"""K = 5 frames to fill the published window, then two that are measured, so that each clip has a consistency pair."""
MEASURED_FRAMES = 2


@dataclass(frozen=True)
class CameraMotion:
    """Between neighbouring frames: a velocity drawn once a clip (mean, sd), and shake drawn for each frame (sd).

    The figures are those of the CamVid val stream, 15 frames/s at 480x360 (`studies/camera_motion/measure.py`),
    rounded; sideways and turning velocities have mean 0, because a car turns both ways. They were fixed before any
    method was compared on these clips.
    """

    shift_x_px: tuple[float, float, float] = (0.0, 1.9, 0.55)
    shift_y_px: tuple[float, float, float] = (0.0, 0.8, 0.8)
    log_zoom: tuple[float, float, float] = (0.0137, 0.0026, 0.0015)
    angle_rad: tuple[float, float, float] = (0.0, 0.0, 0.0057)
    gain_sd: float = 0.002
    """Of the log exposure between frames."""
    noise_levels: float = 1.1
    """Standard deviation of the sensor noise, of 255 levels."""


VAL_CAMERA = CameraMotion()
REFERENCE_WIDTH = 480
"""Shifts are in pixels of a picture this wide."""


def moving_stills(split: ImageFolderSplit, camera: CameraMotion = VAL_CAMERA) -> Iterator[Frame]:
    """CLIP_FRAMES frames for each still of the split, the still last; only the last MEASURED_FRAMES carry labels.

    A clip depends on the still's name alone. Every clip begins with a discontinuity.
    """
    for number, example in enumerate(split.examples):
        image, label = split[number]
        clip = still_clip(image, label, split.classes.void_id, seed_of(example.name), camera)
        for place, (picture, mask) in enumerate(clip):
            index = number * CLIP_FRAMES + place
            measured = mask if place >= CLIP_FRAMES - MEASURED_FRAMES else None
            yield Frame(picture, index, index / VAL_FPS, measured, discontinuity=place == 0)


def still_clip(
    image: np.ndarray,
    label: np.ndarray,
    void: int,
    seed: int,
    camera: CameraMotion = VAL_CAMERA,
    frames: int = CLIP_FRAMES,
) -> list[tuple[np.ndarray, np.ndarray]]:
    """(image, label) pairs that end on the still itself, unchanged; image (H, W, 3) uint8, label (H, W) uint8."""
    generator = np.random.default_rng(seed)
    steps = camera_steps(generator, frames - 1, camera, image.shape[1] / REFERENCE_WIDTH)
    clip, to_still, gain = [(image, label)], np.eye(3), 0.0
    centre = np.array([(image.shape[1] - 1) / 2, (image.shape[0] - 1) / 2])
    for step in reversed(steps):  # from the still backwards: each frame is the still seen through all later steps
        to_still = to_still @ similarity(*step, centre)
        gain += generator.normal(0.0, camera.gain_sd)
        noise = generator.normal(0.0, camera.noise_levels, image.shape)
        clip.append((warp_still(image, to_still, gain, noise), warp_label(label, to_still, void)))
    return clip[::-1]


def camera_steps(
    generator: np.random.Generator, count: int, camera: CameraMotion, scale: float
) -> list[tuple[float, float, float, float]]:
    """(shift x, shift y, log zoom, angle) of each step to the next frame; `scale`: pixels per pixel of
    REFERENCE_WIDTH."""
    columns = []
    for (mean, sd, shake), unit in (
        (camera.shift_x_px, scale),
        (camera.shift_y_px, scale),
        (camera.log_zoom, 1.0),
        (camera.angle_rad, 1.0),
    ):
        velocity = generator.normal(mean, sd)
        columns.append(unit * (velocity + generator.normal(0.0, shake, count)))
    return [(x, y, zoom, angle) for x, y, zoom, angle in zip(*columns, strict=True)]


def similarity(shift_x: float, shift_y: float, log_zoom: float, angle: float, centre: np.ndarray) -> np.ndarray:
    """(3, 3) matrix that takes a pixel (x, y, 1) of a frame to where it lies in the next one."""
    scale, cosine, sine = math.exp(log_zoom), math.cos(angle), math.sin(angle)
    matrix = np.eye(3)
    matrix[:2, :2] = scale * np.array([[cosine, -sine], [sine, cosine]])
    matrix[:2, 2] = centre - matrix[:2, :2] @ centre + (shift_x, shift_y)
    return matrix


def warp_still(image: np.ndarray, to_still: np.ndarray, gain: float, noise: np.ndarray) -> np.ndarray:
    """The still as the earlier frame saw it; beyond its edge it is mirrored."""
    import cv2

    height, width = image.shape[:2]
    seen = cv2.warpAffine(
        image.astype(np.float32),
        to_still[:2],
        (width, height),
        flags=cv2.INTER_CUBIC | cv2.WARP_INVERSE_MAP,
        borderMode=cv2.BORDER_REFLECT_101,
    )
    return np.clip(np.rint(seen * math.exp(gain) + noise), 0, 255).astype(np.uint8)


def warp_label(label: np.ndarray, to_still: np.ndarray, void: int) -> np.ndarray:
    """Nearest neighbour; void where the still shows nothing."""
    import cv2

    height, width = label.shape
    return cv2.warpAffine(
        label,
        to_still[:2],
        (width, height),
        flags=cv2.INTER_NEAREST | cv2.WARP_INVERSE_MAP,
        borderMode=cv2.BORDER_CONSTANT,
        borderValue=int(void),
    )


def seed_of(name: str) -> int:
    """A seed from a still's name: a subset of the stills has the same clips."""
    return int.from_bytes(hashlib.sha256(name.encode()).digest()[:8], "big")
