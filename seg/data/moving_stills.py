"""Moving stills: clips that end on a labelled still, to measure methods that need earlier frames on stills.

A virtual camera drives up to the place where the still was taken. The frames before the still are warps of it, each
with its own sensor noise and exposure. Every frame is warped from the still directly, so that nothing is resampled
twice. Its label is warped in the same way by nearest neighbour, and is void where the still shows nothing. The clips
have no objects that move by themselves, no parallax, and nothing that comes into view.
"""

import hashlib
import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from steadyseg.core.frame import Frame
from steadyseg.seg.data.coarse import is_coarse
from steadyseg.seg.data.label_folder import VAL_FPS, ImageFolderSplit

CLIP_FRAMES = 7
"""Five frames fill the published window; the last two of the clip are measured, as consistency needs a pair."""
MEASURED_FRAMES = 2


@dataclass(frozen=True)
class CameraMotion:
    """Motion between neighbouring frames: a velocity (mean, sd) drawn once for a clip, and shake (sd) drawn for each
    frame.

    The values are measured on the CamVid val stream, 15 frames/s at 480x360 (`studies/camera_motion` at commit
    8701b10), and rounded. Sideways and turning velocities have mean 0, because a car turns both ways. They were fixed
    before any method was compared on these clips.
    """

    shift_x_px: tuple[float, float, float] = (0.0, 1.9, 0.55)
    shift_y_px: tuple[float, float, float] = (0.0, 0.8, 0.8)
    log_zoom: tuple[float, float, float] = (0.0137, 0.0026, 0.0015)
    angle_rad: tuple[float, float, float] = (0.0, 0.0, 0.0057)
    gain_sd: float = 0.002
    """Standard deviation of the log exposure between frames."""
    noise_levels: float = 1.1
    """Standard deviation of the sensor noise, in levels of 255."""


VAL_CAMERA = CameraMotion()
REFERENCE_WIDTH = 480
"""Picture width, in pixels, to which the shifts refer."""


def moving_stills(split: ImageFolderSplit, last: int = CLIP_FRAMES) -> Iterator[Frame]:
    """Yields the `last` frames of each still's clip, the still last; only the last MEASURED_FRAMES have labels.

    A clip depends on the still's name alone, and begins with a discontinuity.
    """
    for number, example in enumerate(split.examples):
        image, label = split[number]
        clip = still_clip(image, label, split.classes.void_id, seed_of(example.name), last=last)
        for place, (picture, mask) in enumerate(clip, start=CLIP_FRAMES - last):
            index = number * CLIP_FRAMES + place
            measured = mask if place >= CLIP_FRAMES - MEASURED_FRAMES else None
            yield Frame(picture, index, index / VAL_FPS, measured, discontinuity=place == CLIP_FRAMES - last)


def still_clip(
    image: np.ndarray,
    label: np.ndarray,
    void: int,
    seed: int,
    camera: CameraMotion = VAL_CAMERA,
    last: int = CLIP_FRAMES,
) -> list[tuple[np.ndarray, np.ndarray]]:
    """Returns (image (H, W, 3) uint8, label (H, W) uint8) pairs of a clip's `last` frames; the still itself is last."""
    generator = np.random.default_rng(seed)
    steps = camera_steps(generator, CLIP_FRAMES - 1, camera, image.shape[1] / REFERENCE_WIDTH)
    clip, to_still, gain = [(image, label)], np.eye(3), 0.0
    centre = np.array([(image.shape[1] - 1) / 2, (image.shape[0] - 1) / 2])
    for step in steps[:-last:-1]:  # backwards from the still: all later steps lead from a frame to the still
        to_still = to_still @ similarity(*step, centre)
        gain += generator.normal(0.0, camera.gain_sd)
        noise = generator.normal(0.0, camera.noise_levels, image.shape)
        clip.append((warp_still(image, to_still, gain, noise), warp_label(label, to_still, void)))
    return clip[::-1]


def camera_steps(
    generator: np.random.Generator, count: int, camera: CameraMotion, scale: float
) -> list[tuple[float, float, float, float]]:
    """Returns (shift x, shift y, log zoom, angle) of each step to the next frame.

    `scale` is the picture's width relative to REFERENCE_WIDTH.
    """
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
    """Returns the (3, 3) matrix that maps a pixel (x, y, 1) of a frame to its position in the next frame."""
    scale, cosine, sine = math.exp(log_zoom), math.cos(angle), math.sin(angle)
    matrix = np.eye(3)
    matrix[:2, :2] = scale * np.array([[cosine, -sine], [sine, cosine]])
    matrix[:2, 2] = centre - matrix[:2, :2] @ centre + (shift_x, shift_y)
    return matrix


def warp_still(image: np.ndarray, to_still: np.ndarray, gain: float, noise: np.ndarray) -> np.ndarray:
    """Warps the still into an earlier frame; beyond its edge it is mirrored."""
    import cv2

    flags, floats = cv2.INTER_CUBIC | cv2.WARP_INVERSE_MAP, image.astype(np.float32)
    seen = cv2.warpAffine(floats, to_still[:2], image.shape[1::-1], flags=flags, borderMode=cv2.BORDER_REFLECT_101)
    return np.clip(np.rint(seen * math.exp(gain) + noise), 0, 255).astype(np.uint8)


def warp_label(label: np.ndarray, to_still: np.ndarray, void: int) -> np.ndarray:
    """Warps the label by nearest neighbour; void where the still shows nothing."""
    import cv2

    flags = cv2.INTER_NEAREST | cv2.WARP_INVERSE_MAP
    is_set = is_coarse(label)  # OpenCV warps no int32; float32 copies its bits
    pixels = label.view(np.float32) if is_set else label
    warped = cv2.warpAffine(pixels, to_still[:2], label.shape[::-1], flags=flags, borderValue=0 if is_set else void)
    return warped.view(label.dtype)


def seed_of(name: str) -> int:
    """Returns a seed from a still's name, so that a subset of the stills has the same clips."""
    return int.from_bytes(hashlib.sha256(name.encode()).digest()[:8], "big")
