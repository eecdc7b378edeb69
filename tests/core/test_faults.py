"""Faults of cameras and transmission."""

import numpy as np
import pytest

from steadyseg.core.corruptions.faults import FAULTS, Fault
from steadyseg.seg.street.drive import Street

PICTURE = Street(height=96, width=128).frame(0).image


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.__name__)
def test_a_fault_grows_with_its_strength_and_depends_on_the_generator_alone(fault: Fault) -> None:
    def changed(strength: int, seed: int) -> np.ndarray:
        return fault(PICTURE, strength, np.random.default_rng(seed))

    apart = [np.abs(changed(s, seed).astype(int) - PICTURE).mean() for s in range(3) for seed in range(5)]
    means = np.array(apart).reshape(3, 5).mean(1)
    assert 0 < means[0] < means[1] < means[2], means
    again = changed(1, 3)
    assert again.dtype == np.uint8 and again.shape == PICTURE.shape and (again == changed(1, 3)).all()


def test_pictures_of_a_classifier_are_large_enough() -> None:
    small = np.random.default_rng(0).integers(0, 256, (32, 32, 3), dtype=np.uint8)
    for fault in FAULTS:
        assert fault(small, 2, np.random.default_rng(1)).shape == small.shape
