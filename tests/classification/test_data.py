"""The held-out share of the training images: the same of every class, and drawn once and for all."""

from collections import Counter

import numpy as np
import pytest
from refusals import refusal

from steadyseg.classification.data.open import split_held_out

LABELS = np.random.default_rng(0).permutation(np.repeat(np.arange(4), (100, 50, 50, 10)))


def test_what_leaves_a_class_without_images_is_refused() -> None:
    assert "0.04 holds out no image of class 3" in refusal(split_held_out, LABELS, 0.04)
    assert "no image of class 3 to train on" in refusal(split_held_out, LABELS, 0.96)


@pytest.mark.parametrize("share", [-0.1, 1.0, float("nan")])
def test_a_share_that_is_none_is_refused(share: float) -> None:
    assert "[0, 1)" in refusal(split_held_out, LABELS, share)


def test_held_out_and_trained_images_are_all_there_are() -> None:
    trained, held = split_held_out(LABELS, 0.1)
    assert Counter(LABELS[held].tolist()) == {0: 10, 1: 5, 2: 5, 3: 1}
    assert sorted([*trained, *held]) == list(range(len(LABELS)))
    again = split_held_out(LABELS, 0.1)
    np.testing.assert_array_equal(held, again[1])
    assert set(held) < set(split_held_out(LABELS, 0.3)[1])
    nothing = split_held_out(LABELS, 0.0)
    assert len(nothing[0]) == len(LABELS) and not len(nothing[1])


def test_held_out_images_are_spread_over_the_set() -> None:
    _, held = split_held_out(np.repeat(np.arange(3), 1000), 0.1)
    for class_id in range(3):
        places = np.sort(held[(held >= 1000 * class_id) & (held < 1000 * (class_id + 1))]) - 1000 * class_id
        assert len(places) == 100 and places[0] < 100 and places[-1] > 900 and np.diff(places).std() > 3
