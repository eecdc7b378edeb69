"""The common corruptions: the library's own types, the same for the same seed, nothing of it left in NumPy's
generator."""

import numpy as np
import pytest

from steadyseg.core.corruptions.corruptions import BENCHMARK_CORRUPTIONS, SEVERITIES, TUNING_CORRUPTIONS, corrupt
from steadyseg.core.errors import InputError

imagecorruptions = pytest.importorskip("imagecorruptions", reason="imagecorruptions-imaug is not installed")

ALL = (*BENCHMARK_CORRUPTIONS, *TUNING_CORRUPTIONS)
RANDOM = (
    "gaussian_noise shot_noise impulse_noise glass_blur motion_blur snow frost fog elastic_transform speckle_noise "
    "spatter"
).split()


def picture(height: int = 40, width: int = 52) -> np.ndarray:
    """Soft shapes of all brightnesses."""
    y, x = np.mgrid[:height, :width]
    waves = [np.sin(x / 5 + c) * np.cos(y / (7 + c)) for c in range(3)]
    return (127.5 + 120 * np.stack(waves, axis=-1)).astype(np.uint8)


def test_the_types_are_those_of_the_library() -> None:
    assert list(BENCHMARK_CORRUPTIONS) == imagecorruptions.get_corruption_names("common")
    assert list(TUNING_CORRUPTIONS) == imagecorruptions.get_corruption_names("validation")


@pytest.mark.parametrize("name", ALL)
def test_every_type_and_severity_is_repeatable_and_leaves_the_generator_alone(name: str) -> None:
    image = picture()
    kept = image.copy()
    np.random.seed(5)
    before = np.random.get_state()[1].copy()
    results = [corrupt(image, name, severity, seed=3, index=7) for severity in SEVERITIES]
    assert (np.random.get_state()[1] == before).all() and (image == kept).all()
    np.random.seed(99)  # what others drew in between does not matter
    for severity, result in zip(SEVERITIES, results, strict=True):
        assert result.shape == image.shape and result.dtype == np.uint8 and (result != image).any()
        assert (corrupt(image, name, severity, seed=3, index=7) == result).all()


@pytest.mark.parametrize("name", RANDOM)
def test_seed_and_index_change_what_is_drawn(name: str) -> None:
    image = picture()
    results = {corrupt(image, name, 5, seed, index).tobytes() for seed, index in ((0, 0), (1, 0), (0, 1), (-1, 0))}
    assert len(results) == 4


@pytest.mark.parametrize("name", sorted(set(ALL) - set(RANDOM)))
def test_the_others_do_not_depend_on_it(name: str) -> None:
    assert (corrupt(picture(), name, 2, 0, 0) == corrupt(picture(), name, 2, 5, 6)).all()


@pytest.mark.parametrize("name", ["gaussian_noise", "impulse_noise", "defocus_blur", "contrast", "jpeg_compression"])
def test_a_higher_severity_is_farther_from_the_picture(name: str) -> None:
    image = picture(64, 64)
    errors = [np.square(corrupt(image, name, s).astype(float) - image).mean() for s in SEVERITIES]
    assert errors == sorted(errors) and errors[-1] > 1.5 * errors[0]


def test_gaussian_noise_has_the_published_deviation() -> None:
    grey = np.full((128, 128, 3), 128, np.uint8)
    for severity, sd in ((1, 0.08), (2, 0.12)):
        assert corrupt(grey, "gaussian_noise", severity).std() / 255 == pytest.approx(sd, rel=0.02)


def test_a_spatter_without_drops_leaves_the_picture_as_it_is() -> None:
    """The library divides 0 by 0 there and would hand back a black picture."""
    image = picture(32, 32)
    results = [corrupt(image, "spatter", 1, index=index) for index in range(150)]
    unchanged = [index for index, result in enumerate(results) if (result == image).all()]
    assert 1 <= len(unchanged) <= 15
    assert min(int(result.max()) for result in results) > 200


def test_a_view_is_corrupted_like_its_copy() -> None:
    turned = picture().transpose(1, 0, 2)[:, ::-1]
    turned.flags.writeable = False
    for name in ("glass_blur", "fog", "pixelate", "brightness"):
        assert (corrupt(turned, name, 3) == corrupt(turned.copy(), name, 3)).all()


@pytest.mark.parametrize(
    ("image", "name", "severity", "message"),
    [
        (picture(31, 40), "fog", 1, "32x32 pixels or more, got 40x31"),
        (picture()[..., 0], "fog", 1, r"\(height, width, 3\), RGB, got uint8 \(40, 52\)"),
        (np.zeros((40, 40, 4), np.uint8), "fog", 1, r"got uint8 \(40, 40, 4\)"),
        (picture().astype(np.float32), "fog", 1, "got float32"),
        (picture().tolist(), "fog", 1, "got list"),
        (picture(), "fog", 0, "1, 2, 3, 4 or 5, got 0"),
        (picture(), "fog", 6, "got 6"),
        (picture(), "fog", 2.5, "got 2.5"),
        (picture(), "gausian_noise", 1, "did you mean gaussian_noise"),
        (picture(), "Motion-Blur", 1, "did you mean motion_blur"),
        (picture(), "sepia", 1, "There are gaussian_noise, .*saturate"),
    ],
)
def test_bad_input_is_one_clear_line(image: np.ndarray, name: str, severity: int, message: str) -> None:
    with pytest.raises(InputError, match=message) as refused:
        corrupt(image, name, severity)
    assert "\n" not in str(refused.value)
