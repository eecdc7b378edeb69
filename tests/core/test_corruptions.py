"""The common corruptions: the library's own types, repeatable, nothing of them left in NumPy's generator."""

from importlib.util import find_spec

import numpy as np
import pytest

from steadyseg.core.corruptions.camera_changes import h264
from steadyseg.core.corruptions.corruptions import BENCHMARK_CORRUPTIONS, SEVERITIES, TUNING_CORRUPTIONS, corrupt
from steadyseg.core.corruptions.faults import FAULTS, Fault
from steadyseg.street.drive import Street

pytestmark = pytest.mark.skipif(not find_spec("imagecorruptions"), reason="imagecorruptions-imaug is not installed")
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
    import imagecorruptions  # 1 s in each process that collects this file

    assert list(BENCHMARK_CORRUPTIONS) == imagecorruptions.get_corruption_names("common")
    assert list(TUNING_CORRUPTIONS) == imagecorruptions.get_corruption_names("validation")


@pytest.mark.parametrize("name", ALL)
def test_every_type_and_severity_is_repeatable_and_leaves_the_generator_alone(name: str) -> None:
    image = picture(32, 32)  # glass_blur loops over pixels
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
    for name in ("glass_blur", "fog"):
        assert (corrupt(turned, name, 3) == corrupt(turned.copy(), name, 3)).all()


STREET = Street(height=96, width=128).frame(0).image


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.__name__)
def test_a_fault_grows_with_its_strength_and_depends_on_the_generator_alone(fault: Fault) -> None:
    def changed(strength: int, seed: int) -> np.ndarray:
        return fault(STREET, strength, np.random.default_rng(seed))

    apart = [np.abs(changed(s, seed).astype(int) - STREET).mean() for s in range(3) for seed in range(5)]
    means = np.array(apart).reshape(3, 5).mean(1)
    assert 0 < means[0] < means[1] < means[2], means
    again = changed(1, 3)
    assert again.dtype == np.uint8 and again.shape == STREET.shape and (again == changed(1, 3)).all()


def test_pictures_of_a_classifier_are_large_enough() -> None:
    small = np.random.default_rng(0).integers(0, 256, (32, 32, 3), dtype=np.uint8)
    for fault in FAULTS:
        assert fault(small, 2, np.random.default_rng(1)).shape == small.shape


@pytest.mark.parametrize("rows", [40, 41])
def test_a_picture_of_odd_height_is_coded_too(rows: int) -> None:
    image = picture(rows)
    found = h264([image], rows, crf=1)
    assert found.shape == image.shape
    assert np.abs(found[-1].astype(int) - image[-1]).mean() < 12  # the colours have half the resolution
