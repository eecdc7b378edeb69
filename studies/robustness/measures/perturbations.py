"""Perturbation sequences: a picture that changes a little from frame to frame, as in CIFAR-10-P (arXiv 1903.12261).

Steps are CIFAR-10-P's at every picture size: a pixel, a degree, 2 % of scale. Where a frame shows more than the
picture, the picture is mirrored (published: black), so that its edge is no cue.
"""

from collections.abc import Callable
from typing import Any, Literal

import numpy as np

from steadyseg.core.corruptions.corruptions import require_known, require_picture

Comparison = Literal["first", "neighbours"]

PUBLISHED = tuple(
    "gaussian_noise shot_noise motion_blur zoom_blur spatter brightness translate rotate tilt scale".split()
)
"""The ten perturbations of CIFAR-10-P that a mean is taken of."""

FRAMES = 31
NOISE_SD = 0.02
"""Standard deviation of the Gaussian noise; the picture is 0..1."""
SHOT_PHOTONS = 700
"""Mean number of a white pixel's photons."""


def perturb(image: np.ndarray, name: str, seed: int = 0, index: int = 0) -> np.ndarray:
    """(H, W, 3) uint8 RGB of any size -> (frames, H, W, 3) uint8: 31 frames, of translate 16, of motion_blur 21.

    Depends on (seed, index, name) alone; only noise is random. Frame 0 of noise and zoom_blur and the middle frame of
    brightness, rotate, tilt and scale (translate: frame 7) are the picture itself. Raises InputError for another shape
    or dtype and for an unknown name.
    """
    require_known(name, tuple(GENERATED), "perturbation")
    require_picture(image)
    generator = np.random.default_rng([seed % 2**64, index, tuple(GENERATED).index(name)])
    return np.stack(GENERATED[name](image, generator))


def compared_with(name: str) -> Comparison:
    """Returns "first" for noise, as two noisy frames share nothing, and "neighbours" for all others."""
    return "first" if name.endswith("_noise") else "neighbours"


def gaussian_noise(image: np.ndarray, generator: np.random.Generator) -> list[np.ndarray]:
    later = (_levels(image + 255 * NOISE_SD * generator.standard_normal(image.shape)) for _ in range(FRAMES - 1))
    return [image, *later]


def shot_noise(image: np.ndarray, generator: np.random.Generator) -> list[np.ndarray]:
    photons = image / 255 * SHOT_PHOTONS
    return [image, *(_levels(generator.poisson(photons) * (255 / SHOT_PHOTONS)) for _ in range(FRAMES - 1))]


def motion_blur(image: np.ndarray, generator: np.random.Generator) -> list[np.ndarray]:
    """A comet's tail of 13 pixels (half a Gaussian of 1.8 pixels) that turns by 9 degrees a frame, half a turn in
    all."""
    import cv2

    reach, frames = 12, 21
    weights = np.exp(-(np.arange(reach + 1) ** 2) / (2 * 1.8**2))
    sequence = []
    for angle in np.deg2rad(9.0 * np.arange(1 - frames, 1)):
        kernel = np.zeros((2 * reach + 1, 2 * reach + 1))
        rows, columns = (np.rint(np.arange(reach + 1) * f(angle)).astype(int) for f in (np.sin, np.cos))
        np.add.at(kernel, (reach + rows, reach + columns), weights / weights.sum())
        sequence.append(cv2.filter2D(image, -1, kernel, borderType=cv2.BORDER_REFLECT_101))
    return sequence


def zoom_blur(image: np.ndarray, generator: np.random.Generator) -> list[np.ndarray]:
    """The mean of the picture and ever more enlargements of it, 0.4 % apart."""
    total, sequence = image.astype(np.float64), [image]
    for i in range(1, FRAMES):
        total = total + _warp(image, np.diag([1 + 0.004 * i, 1 + 0.004 * i, 1.0]))
        sequence.append(_levels(total / (i + 1)))
    return sequence


def gaussian_blur(image: np.ndarray, generator: np.random.Generator) -> list[np.ndarray]:
    """Standard deviation 0.3 to 0.75 pixels."""
    import cv2

    border: Any = {"borderType": cv2.BORDER_REFLECT_101}
    return [cv2.GaussianBlur(image, (7, 7), 0.3 + 0.015 * i, **border) for i in range(FRAMES)]


def brightness(image: np.ndarray, generator: np.random.Generator) -> list[np.ndarray]:
    """The value of HSV by -22.5 % to 22.5 % of full scale; hue and saturation stay, so colours keep their ratios."""
    value = image.max(axis=2, keepdims=True).astype(np.float64)
    colour = np.divide(image, value, out=np.ones(image.shape), where=value > 0)  # black becomes grey
    return [_levels(colour * (value + 255 * 0.015 * i).clip(0, 255)) for i in _around_zero()]


def translate(image: np.ndarray, generator: np.random.Generator) -> list[np.ndarray]:
    """7 pixels from the left to 8 to the right; a CIFAR picture has no room for 31 frames."""
    return [_warp(image, np.array([[1.0, 0, i], [0, 1, 0], [0, 0, 1]])) for i in range(-7, 9)]


def rotate(image: np.ndarray, generator: np.random.Generator) -> list[np.ndarray]:
    """-15 to 15 degrees about the centre."""
    return [_warp(image, _rotation(np.deg2rad(i), (0, 1))) for i in _around_zero()]


def tilt(image: np.ndarray, generator: np.random.Generator) -> list[np.ndarray]:
    """-11.25 to 11.25 degrees about both axes of the picture, seen from one diagonal away."""
    distance = float(np.hypot(*image.shape[:2]))
    lens = np.diag([distance, distance, 1.0])
    sequence = []
    for angle in np.deg2rad(0.75 * _around_zero()):
        turned = _rotation(angle, (1, 2)) @ _rotation(angle, (2, 0))
        sequence.append(_warp(image, lens @ np.column_stack([turned[:, 0], turned[:, 1], [0, 0, distance]])))
    return sequence


def scale(image: np.ndarray, generator: np.random.Generator) -> list[np.ndarray]:
    """70 % to 130 % about the centre."""
    return [_warp(image, np.diag([1 + 0.02 * i, 1 + 0.02 * i, 1.0])) for i in _around_zero()]


GENERATED: dict[str, Callable[[np.ndarray, np.random.Generator], list[np.ndarray]]] = {
    "gaussian_noise": gaussian_noise,
    "shot_noise": shot_noise,
    "motion_blur": motion_blur,
    "zoom_blur": zoom_blur,
    "gaussian_blur": gaussian_blur,
    "brightness": brightness,
    "translate": translate,
    "rotate": rotate,
    "tilt": tilt,
    "scale": scale,
}
"""Perturbations that `perturb` makes: the published ten with gaussian_blur in place of spatter."""


def _around_zero() -> np.ndarray:
    return np.arange(FRAMES) - FRAMES // 2


def _levels(image: np.ndarray) -> np.ndarray:
    return np.asarray(np.clip(np.rint(image), 0, 255).astype(np.uint8))


def _rotation(angle: float, plane: tuple[int, int]) -> np.ndarray:
    """(3, 3) rotation by an angle in radians in the plane of two axes."""
    matrix = np.eye(3)
    first, second = plane
    matrix[first, first] = matrix[second, second] = np.cos(angle)
    matrix[first, second], matrix[second, first] = -np.sin(angle), np.sin(angle)
    return matrix


def _warp(image: np.ndarray, matrix: np.ndarray) -> np.ndarray:
    """The picture mapped by a (3, 3) homography about its centre; bilinear, mirrored at the edge."""
    import cv2

    height, width = image.shape[:2]
    centre = np.array([[1.0, 0, (width - 1) / 2], [0, 1, (height - 1) / 2], [0, 0, 1]])
    about = centre @ matrix @ np.linalg.inv(centre)
    return np.asarray(
        cv2.warpPerspective(image, about, (width, height), flags=cv2.INTER_LINEAR, borderMode=cv2.BORDER_REFLECT_101)
    )
