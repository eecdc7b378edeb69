"""Perturbation sequences: one small step a frame, the picture itself where the step is zero."""

import math

import numpy as np
import pytest

from steadyseg.studies.robustness.measures.perturbations import GENERATED, PUBLISHED, compared_with, perturb

MIDDLE = {"brightness": 15, "rotate": 15, "tilt": 15, "scale": 15, "translate": 7}
NOISE = ("gaussian_noise", "shot_noise")


def picture(height: int = 40, width: int = 52) -> np.ndarray:
    y, x = np.mgrid[:height, :width]
    waves = [np.sin(x / 5 + c) * np.cos(y / (7 + c)) for c in range(3)]
    return (127.5 + 90 * np.stack(waves, axis=-1)).astype(np.uint8)


@pytest.mark.parametrize("name", GENERATED)
@pytest.mark.parametrize("size", [(32, 32), (37, 61), (5, 8)])
def test_any_size_gives_frames_of_that_size_and_only_noise_is_random(name: str, size: tuple[int, int]) -> None:
    image = picture(*size)
    kept = image.copy()
    sequence = perturb(image, name, seed=1, index=2)
    frames = {"translate": 16, "motion_blur": 21}.get(name, 31)
    assert sequence.shape == (frames, *size, 3) and sequence.dtype == np.uint8 and (image == kept).all()
    assert (perturb(image, name, seed=1, index=2) == sequence).all()
    same = [bool((perturb(image, name, *other) == sequence).all()) for other in ((1, 3), (2, 2), (-1, 2))]
    assert same == [name not in NOISE] * 3


@pytest.mark.parametrize(("name", "frame"), [*MIDDLE.items(), *((name, 0) for name in (*NOISE, "zoom_blur"))])
def test_the_step_of_zero_is_the_picture(name: str, frame: int) -> None:
    assert (perturb(picture(), name)[frame] == picture()).all()


def test_which_pairs_are_compared() -> None:
    noisy = [name for name in PUBLISHED if compared_with(name) == "first"]
    assert noisy == ["gaussian_noise", "shot_noise"] and compared_with("speckle_noise") == "first"
    assert set(GENERATED) - {"gaussian_blur"} == set(PUBLISHED) - {"spatter"}


def test_noise_has_its_deviation_in_every_frame() -> None:
    grey = np.full((100, 100, 3), 128, np.uint8)
    for name, sd in (("gaussian_noise", 5.1), ("shot_noise", 255 * math.sqrt(128 / 255 / 700))):
        sequence = perturb(grey, name)
        assert (sequence[0] == grey).all() and len({frame.tobytes() for frame in sequence}) == 31
        assert sequence[1:].std((1, 2, 3)) == pytest.approx(math.hypot(sd, 1 / math.sqrt(12)), rel=0.04)


def test_translation_moves_by_one_pixel_a_frame() -> None:
    image = picture()
    sequence = perturb(image, "translate")
    for frame, shift in enumerate(range(-7, 9)):
        inside = slice(max(shift, 0), 52 + min(shift, 0))
        source = slice(max(-shift, 0), 52 + min(-shift, 0))
        assert (sequence[frame][:, inside] == image[:, source]).all()


def test_the_edge_is_mirrored() -> None:
    image = picture()
    first = perturb(image, "translate")[0]
    assert (first[:, -7:] == image[:, -2:-9:-1]).all()
    for name in ("translate", "rotate", "tilt", "scale"):
        assert perturb(np.full((33, 50, 3), 200, np.uint8), name).min() == 200


def marked(x: float, y: float, side: int = 101) -> np.ndarray:
    """A soft dot at (x, y) from the centre."""
    rows, columns = np.mgrid[:side, :side] - (side - 1) / 2
    dot = 250 * np.exp(-((columns - x) ** 2 + (rows - y) ** 2) / (2 * 2.5**2))
    return np.repeat(dot[..., None], 3, axis=2).astype(np.uint8)


def found(frame: np.ndarray) -> tuple[float, float]:
    """The dot's (x, y) from the centre."""
    weights = frame[..., 0].astype(float)
    rows, columns = np.mgrid[: len(weights), : len(weights)] - (len(weights) - 1) / 2
    return float((weights * columns).sum() / weights.sum()), float((weights * rows).sum() / weights.sum())


def test_geometry_takes_a_point_where_it_should() -> None:
    image = marked(20.0, 8.0)
    radius, angle = math.hypot(20, 8), math.atan2(8, 20)
    for i, frame in zip(range(-15, 16), perturb(image, "rotate"), strict=True):
        x, y = found(frame)
        turned = angle + math.radians(i)
        assert (x, y) == pytest.approx((radius * math.cos(turned), radius * math.sin(turned)), abs=0.05)
    for i, frame in zip(range(-15, 16), perturb(image, "scale"), strict=True):
        assert found(frame) == pytest.approx((20 * (1 + 0.02 * i), 8 * (1 + 0.02 * i)), abs=0.05)
    for i, frame in zip(range(-15, 16), perturb(image, "tilt"), strict=True):
        assert found(frame) == pytest.approx(tilted(20.0, 8.0, math.radians(0.75 * i), 101 * math.sqrt(2)), abs=0.2)


def tilted(x: float, y: float, angle: float, distance: float) -> tuple[float, float]:
    """A point of the plane turned about the vertical, then the horizontal axis, then seen from `distance`."""
    x, z = x * math.cos(angle), -x * math.sin(angle)
    y, z = y * math.cos(angle) - z * math.sin(angle), y * math.sin(angle) + z * math.cos(angle)
    return distance * x / (distance + z), distance * y / (distance + z)


def test_blurs_keep_a_plain_picture_and_soften_an_edge() -> None:
    plain = np.full((40, 40, 3), 77, np.uint8)
    edge = np.zeros((64, 64, 3), np.uint8)
    edge[:, 32:] = 255
    for name in ("motion_blur", "zoom_blur", "gaussian_blur"):
        assert (perturb(plain, name) == 77).all()
    steepness = [np.abs(np.diff(frame[32, :, 0].astype(int))).max() for frame in perturb(edge, "gaussian_blur")]
    assert steepness == sorted(steepness, reverse=True) and steepness[0] > 240 and steepness[-1] < 140
    dot = np.zeros((41, 41, 3), np.uint8)
    dot[20, 20] = 255
    across, up, back = (perturb(dot, "motion_blur")[frame][..., 0] for frame in (0, 10, 20))
    assert (across[20] > 0).sum() == (up[:, 20] > 0).sum() == (back[20] > 0).sum() > 4
    assert (across == back[:, ::-1]).all() and np.count_nonzero(np.delete(up, 20, axis=1)) == 0


def test_brightness_moves_the_value_and_keeps_the_ratios() -> None:
    image = np.tile(np.array([60, 90, 120], np.uint8), (8, 8, 1))
    sequence = perturb(image, "brightness")
    for i, frame in zip(range(-15, 16), sequence.astype(float), strict=True):
        value = 120 + 255 * 0.015 * i
        assert frame == pytest.approx(np.broadcast_to([value / 2, 0.75 * value, value], frame.shape), abs=0.51)
    assert perturb(np.zeros((4, 4, 3), np.uint8), "brightness")[-1].std() == 0
