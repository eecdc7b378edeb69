"""Scene cuts: found between streets, and not in one drive, flashes, fades or repeated frames; files find the same."""

from itertools import pairwise

import numpy as np
import pytest
import torch
from made.methods import opened_by_torch

from steadyseg.core.cuts import CUT, MAX_GAP, CutDetector, distance, structure, thumbnail
from steadyseg.core.frame import Frame
from steadyseg.street.drive import Street

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


@pytest.mark.parametrize(("dark", "noise"), [(2, 1), (10, 6), (20, 6)])
def test_noise_alone_is_no_cut(dark: int, noise: int):
    """A closed lens, a camera at night, and black that is stored as 16: grey noise at three sizes."""
    draw = np.random.default_rng(0)
    for size in ((120, 160), (240, 320), (720, 1280)):
        levels = draw.normal(dark, noise, (4, *size, 1)).repeat(3, -1).round().clip(0, 255)
        assert cuts_in(list(levels.astype(np.uint8))) == []
        kept = structure(thumbnail(torch.from_numpy(levels).permute(0, 3, 1, 2).float()))
        assert float(distance(kept[:-1], kept[1:]).max()) <= CUT


def test_dark_streets_are_still_two_scenes(drives):
    joined = [(image * 0.2).astype(np.uint8) for drive in drives[:2] for image in drive]
    assert cuts_in(joined) == [8]


def test_a_segmenter_marks_the_first_frame_of_a_scene(drives: list[list[np.ndarray]]) -> None:
    frames = [Frame(image, index, 0.0) for index, image in enumerate(drives[0][:3] + drives[1][:3])]
    segmenter = opened_by_torch("street-tiny", mode="vq-dnn", size=64)
    assert [frame.index for frame in frames if segmenter.step(frame).cut] == [3]
