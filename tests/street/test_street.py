"""The procedural street: exact, repeatable from seed and index alone, and with every class in it."""

import hashlib
import subprocess
import sys
from itertools import pairwise

import numpy as np
import pytest

from steadyseg.core.classes import CAMVID
from steadyseg.core.frame import Frame
from steadyseg.street.drive import Street, StreetSet

SKY, BUILDING, ROAD = 0, 1, 3
DIGEST = """
import hashlib
from steadyseg.street.drive import Street
frame = Street(seed=4, height=48, width=64).frame(37)
print(hashlib.sha256(frame.image.tobytes() + frame.label.tobytes()).hexdigest())
"""


def small(seed: int, **options: float) -> Street:
    return Street(seed=seed, height=96, width=128, **options)


def label_of(frame: Frame) -> np.ndarray:
    assert frame.label is not None
    return frame.label


def same(first: Frame, second: Frame) -> bool:
    return np.array_equal(first.image, second.image) and np.array_equal(label_of(first), label_of(second))


def test_a_frame_is_the_same_in_any_order_of_access() -> None:
    in_order = {frame.index: frame for frame in small(4).frames(4, start=30)}
    other = small(4)
    assert all(same(other.frame(index), in_order[index]) for index in (33, 30, 32, 31))


@pytest.mark.slow
def test_a_frame_is_the_same_in_a_fresh_process() -> None:
    frame = Street(seed=4, height=48, width=64).frame(37)
    expected = hashlib.sha256(frame.image.tobytes() + label_of(frame).tobytes()).hexdigest()
    environment = {"PYTHONHASHSEED": "1", "PYTHONPATH": ":".join(filter(None, sys.path))}
    done = subprocess.run([sys.executable, "-c", DIGEST], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == expected


def test_another_seed_is_another_street() -> None:
    first, second = small(0).frame(10), small(6).frame(10)  # the same time of day
    assert (label_of(first) != label_of(second)).mean() > 0.05


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.long) for seed in (1, 2))])
def test_every_class_occurs_within_100_frames_and_no_other(seed: int) -> None:
    street = small(seed)
    labels = np.stack([label_of(street.frame(index)) for index in range(0, 100, 9)])
    counts = np.bincount(labels.ravel(), minlength=256)
    assert all(counts[: len(CAMVID)] > 0)
    assert counts[len(CAMVID) :].sum() == 0


@pytest.mark.parametrize("seed", [1, 5])
def test_labels_move_a_little_from_frame_to_frame(seed: int) -> None:
    labels = [label_of(frame) for frame in small(seed).frames(3, start=50)]
    changes = [(before != after).mean() for before, after in pairwise(labels)]
    assert all(0.002 < change < 0.25 for change in changes)


def test_the_road_stays_below_the_horizon_and_the_sky_above() -> None:
    for frame in (small(seed).frame(25) for seed in range(2)):
        rows, _ = np.nonzero(label_of(frame) == SKY)
        assert rows.max() < 0.53 * 96
        rows, _ = np.nonzero(label_of(frame) == ROAD)
        assert rows.min() > 0.44 * 96


@pytest.mark.parametrize("blur", [0, 1])
def test_no_shift_of_the_label_fits_the_picture_better(blur: float) -> None:
    """By day the clear sky is bluer than walls; guessed from colour alone, it lines up with the label to the pixel."""
    frame = Street(seed=0, height=180, width=240, noise=0, blur=blur).frame(25)
    label = label_of(frame)
    blueness = frame.image[..., 2].astype(int) - frame.image[..., 0]
    threshold = (np.median(blueness[label == SKY]) + np.median(blueness[label == BUILDING])) / 2
    misfits = {
        (down, right): _misfit(np.roll(label, (down, right), (0, 1)), blueness > threshold)
        for down in (-1, 0, 1)
        for right in (-1, 0, 1)
    }
    assert min(misfits, key=lambda shift: misfits[shift]) == (0, 0)
    assert misfits[0, 0] < 0.05


def _misfit(label: np.ndarray, blue: np.ndarray) -> float:
    """Share of the sky and building pixels whose colour says the other of the two."""
    label, blue = label[2:-2, 2:-2], blue[2:-2, 2:-2]
    judged = (label == SKY) | (label == BUILDING)
    return float((blue != (label == SKY))[judged].mean())


def test_noise_has_the_stated_deviation_and_leaves_labels_alone() -> None:
    clean, noisy = small(3, noise=0).frame(20), small(3, noise=1).frame(20)
    assert np.array_equal(label_of(small(3, noise=0, blur=0).frame(20)), label_of(noisy))
    difference = noisy.image.astype(float) - clean.image
    assert abs(difference.mean()) < 0.2
    assert 2.2 < difference.std() < 2.8


@pytest.mark.parametrize(("height", "width"), [(33, 57), (64, 301)])
def test_odd_sizes_work(height: int, width: int) -> None:
    frame = Street(seed=2, height=height, width=width).frame(3)
    assert frame.image.shape == (height, width, 3)
    assert label_of(frame).shape == (height, width)


def test_a_larger_picture_shows_the_same_street() -> None:
    """Pixel (r, c) of the small picture and (2 r, 2 c) of the large one look along nearly the same ray."""
    low, high = label_of(small(1).frame(12)), label_of(Street(seed=1, height=192, width=256).frame(12))
    assert (low == high[::2, ::2]).mean() > 0.9


def test_frames_carry_their_index_and_time() -> None:
    frames = [*small(1, fps=20.0).frames(2), small(1, fps=20.0).frame(40)]
    assert [frame.index for frame in frames] == [0, 1, 40]
    assert [frame.time_s for frame in frames] == [0.0, 0.05, 2.0]
    assert [frame.discontinuity for frame in frames] == [True, False, False]


def test_pictures_of_a_set_are_repeatable_and_different() -> None:
    pictures = StreetSet(count=26, height=48, width=64)
    first, again, same_street, other_street = pictures[3], pictures[3], pictures[4], pictures[15]
    assert len(pictures) == 26
    assert np.array_equal(first[0], again[0]) and np.array_equal(first[1], again[1])
    assert not np.array_equal(first[0], same_street[0]) and not np.array_equal(first[0], other_street[0])
    assert first[0].shape == (48, 64, 3) and first[1].shape == (48, 64) and first[1].max() <= 11
