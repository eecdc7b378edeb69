"""Scene cuts: found between streets, and not in one drive, flashes, fades or repeated frames; files find the same."""

from itertools import pairwise

import numpy as np
import pytest
import torch

from steadyseg.core.cuts import CUT, MAX_GAP, CutDetector, distance, structure, thumbnail
from steadyseg.seg.street.drive import Street

SEEDS = (101, 102, 103)  # no drive of the choice


@pytest.fixture(scope="module")
def drives() -> list[list[np.ndarray]]:
    """Eight neighbouring frames of each street."""
    return [[frame.image for frame in Street(seed=seed).frames(8, start=40)] for seed in SEEDS]


def cuts_in(images: list[np.ndarray], gap: int = 1) -> list[int]:
    """Numbers of the frames before which a cut is found."""
    detector = CutDetector()
    return [number for number, image in enumerate(images) if detector(image, gap if number else 0)]


def test_a_cut_is_found_at_its_frame_and_nowhere_else(drives):
    joined = [image for drive in drives for image in drive]
    assert cuts_in(joined) == [8, 16]


def test_light_fades_and_repeated_frames_are_no_cuts(drives):
    street = drives[0]
    flash = np.clip(street[3].astype(np.float32) * 2.5 + 20, 0, 255).astype(np.uint8)
    fade = [(image * share).astype(np.uint8) for image, share in zip(street[4:], (0.6, 0.3, 0.1, 0.0), strict=True)]
    assert cuts_in([*street[:3], flash, street[3], street[3], *fade]) == []


def test_frames_far_apart_are_not_compared(drives):
    joined = [drives[0][0], drives[1][0]]
    assert cuts_in(joined, MAX_GAP) == [1]
    assert cuts_in(joined, MAX_GAP + 1) == []


def test_thumbnails_of_files_and_of_frames_tell_the_same(drives):
    """A file averages whole pixels of the network's picture, a segmenter any share of a pixel."""
    images = [drive[0] for drive in drives]
    kept = [structure(thumbnail(torch.from_numpy(image).permute(2, 0, 1)[None].float())) for image in images]
    detector = CutDetector()
    for number, (before, now) in enumerate(pairwise(kept)):
        assert detector(images[number], 0) is False
        assert detector(images[number + 1], 1) is bool(distance(before, now) > CUT) is True


def test_faint_noise_in_the_dark_is_no_cut():
    """Levels of 0 and 1: their logarithm alone would have more structure than a street."""
    draw = np.random.default_rng(0)
    assert cuts_in([(draw.random((360, 480, 3)) < 0.38).astype(np.uint8) for _ in range(4)]) == []
