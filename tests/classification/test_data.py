"""Shares of the training images: the same number of every class, drawn once and for all from the seed."""

from collections import Counter

import numpy as np
import pytest
from refusals import refusal

from steadyseg.classification.data.open import (
    balanced_fraction,
    balanced_subset,
    split_held_out,
    training_indices,
)

LABELS = np.random.default_rng(0).permutation(np.repeat(np.arange(4), (100, 50, 50, 10)))


@pytest.mark.parametrize(("fraction", "counts"), [(1.0, (100, 50, 50, 10)), (0.1, (10, 5, 5, 1)), (0.06, (6, 3, 3, 1))])
def test_every_class_keeps_its_share(fraction: float, counts: tuple[int, ...]) -> None:
    chosen = balanced_fraction(LABELS, fraction, seed=0)
    assert Counter(LABELS[chosen].tolist()) == dict(enumerate(counts))
    assert (np.diff(chosen) > 0).all()


def test_a_fraction_depends_on_the_seed_and_grows_within_it() -> None:
    small, large, other = (balanced_fraction(LABELS, *key) for key in ((0.1, 3), (0.5, 3), (0.1, 4)))
    assert set(small) < set(large) and not np.array_equal(small, other)
    np.testing.assert_array_equal(small, balanced_fraction(LABELS, 0.1, 3))
    both = [set(balanced_fraction(LABELS, 0.5, seed)) for seed in range(40)]
    times = Counter(index for chosen in both for index in chosen)
    assert len(times) == len(LABELS) and max(times.values()) < 36  # every image has its chance: 20 of 40, +-5 sigma


def test_what_leaves_a_class_without_images_is_refused() -> None:
    message = refusal(lambda: balanced_fraction(LABELS, 0.04, 0))
    assert "none of the 10 images of class 3" in message and "0.04" in message
    assert "class 3" in refusal(lambda: split_held_out(LABELS, 0.04))
    assert "to train on" in refusal(lambda: split_held_out(LABELS, 0.96))


@pytest.mark.parametrize("share", [-0.1, 1.1, float("nan")])
def test_a_share_that_is_none_is_refused(share: float) -> None:
    assert "(0, 1]" in refusal(lambda: balanced_fraction(LABELS, share, 0))
    assert "[0, 1)" in refusal(lambda: split_held_out(LABELS, share))
    assert "(0, 1]" in refusal(lambda: balanced_fraction(LABELS, 0.0, 0))
    assert "[0, 1)" in refusal(lambda: split_held_out(LABELS, 1.0))


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


def test_every_fraction_and_seed_holds_the_same_images_back() -> None:
    kept = [training_indices(LABELS, fraction, 0.2, seed) for fraction, seed in ((1.0, 0), (0.5, 0), (0.5, 1))]
    for trained, held in kept:
        np.testing.assert_array_equal(held, kept[0][1])
        assert not set(trained) & set(held)
    assert [len(trained) for trained, _ in kept] == [168, 84, 84]
    assert set(kept[1][0]) < set(kept[0][0]) and set(kept[1][0]) != set(kept[2][0])


def test_subsets_are_balanced_nested_and_the_same_for_every_seed() -> None:
    labels = np.random.default_rng(1).permutation(np.repeat(np.arange(10), 500))
    small, middle, large = (balanced_subset(labels, count) for count in (100, 1000, 5000))
    assert Counter(labels[small].tolist()) == dict.fromkeys(range(10), 10) and (np.diff(small) > 0).all()
    assert set(small) < set(middle) < set(large) and len(large) == 5000
    places = [training_indices(labels, 1.0, 0.1, seed, 1000) for seed in (0, 1)]
    np.testing.assert_array_equal(places[0][0], places[1][0])
    np.testing.assert_array_equal(places[0][1], split_held_out(labels, 0.1)[1])
    assert not set(places[0][0]) & set(places[0][1]) and len(places[0][0]) == 1000
    half = training_indices(labels, 0.5, 0.1, 0, 1000)[0]
    assert set(half) < set(places[0][0]) and len(half) == 500


@pytest.mark.parametrize("count", [-10, 11, 200])
def test_a_subset_that_the_classes_cannot_share_is_refused(count: int) -> None:
    assert f"subset of {count} images" in refusal(lambda: balanced_subset(LABELS, count))
