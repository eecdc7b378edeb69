"""The street as training data."""

import numpy as np
import pytest

from steadyseg.core.errors import InputError
from steadyseg.seg.street.drive import StreetSet


def test_pictures_are_repeatable_and_different() -> None:
    pictures = StreetSet(count=26, height=48, width=64)
    first, again, same_street, other_street = pictures[3], pictures[3], pictures[4], pictures[15]
    assert len(pictures) == 26
    assert np.array_equal(first[0], again[0]) and np.array_equal(first[1], again[1])
    assert not np.array_equal(first[0], same_street[0]) and not np.array_equal(first[0], other_street[0])
    assert first[0].shape == (48, 64, 3) and first[1].shape == (48, 64) and first[1].max() <= 11


def test_an_empty_set_is_refused() -> None:
    with pytest.raises(InputError, match="one picture or more"):
        StreetSet(count=0)
