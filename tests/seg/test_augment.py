"""Augmentation: whatever moves a picture must move its label; rare classes are looked for and pasted."""

import dataclasses
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor
from torchvision.transforms import v2

from steadyseg.core.classes import CAMVID
from steadyseg.core.corruptions.corruptions import BENCHMARK_CORRUPTIONS, TUNING_CORRUPTIONS
from steadyseg.seg.data.augment import Augment, Example, shift_hue, to_tensors
from steadyseg.seg.data.rare import RarePictures, paste, place_of, rare_classes
from steadyseg.seg.data.statistics import measure
from steadyseg.seg.options import AugmentOptions

VOID = 255
STILL = AugmentOptions(
    crop_height=64,
    crop_width=96,
    flip=0.0,
    scale_min=1.0,
    scale_max=1.0,
    brightness=0.0,
    contrast=0.0,
    saturation=0.0,
    hue=0.0,
)
"""No variation at all for a picture of 64x96 at a network height of 64."""


def augment(height: int = 64, void: int = VOID, **changes: Any) -> Augment:
    return Augment(dataclasses.replace(STILL, **changes), height, void)


def coordinates(height: int = 64, width: int = 96, axis: str = "x") -> tuple[np.ndarray, np.ndarray]:
    """Red is x + 1, green y + 1 (0 is padding); the label is one of them."""
    rows, columns = np.indices((height, width))
    image = np.stack([columns + 1, rows + 1, np.full_like(rows, 100)], -1).astype(np.uint8)
    return image, image[..., 0 if axis == "x" else 1].copy()


def test_without_variation_nothing_changes() -> None:
    image, label = coordinates()
    picture, mask = augment()(Example(image, label), 3)
    np.testing.assert_array_equal(picture.permute(1, 2, 0).numpy(), image)
    np.testing.assert_array_equal(mask.numpy(), label)
    assert picture.dtype == torch.uint8 and mask.dtype == torch.int64
    assert type(picture) is Tensor and type(mask) is Tensor


@pytest.mark.parametrize("axis", ["x", "y"])
@pytest.mark.parametrize("seed", range(3))
def test_crop_and_flip_move_the_label_with_the_picture(axis: str, seed: int) -> None:
    image, label = coordinates(axis=axis)
    picture, mask = augment(crop_height=40, crop_width=48, flip=0.5)(Example(image, label), seed)
    assert picture.shape == (3, 40, 48) and mask.shape == (40, 48)
    assert torch.equal(picture[0 if axis == "x" else 1].long(), mask)


@pytest.mark.parametrize("axis", ["x", "y"])
@pytest.mark.parametrize("zoom", [0.6, 1.37])
def test_zooming_moves_the_label_with_the_picture(zoom: float, axis: str) -> None:
    """A ramp stays a ramp under bilinear zoom, so the picture says where each pixel came from."""
    image, label = coordinates(axis=axis)
    picture, mask = augment(crop_height=30, crop_width=40, flip=0.5, scale_min=zoom, scale_max=zoom)(
        Example(image, label), 1
    )
    inside = (mask > 3) & (mask < (93 if axis == "x" else 61))  # the filter is one-sided at the border
    off = (picture[0 if axis == "x" else 1].long() - mask)[inside].float()
    assert inside.sum() > 300 and off.abs().max() <= 1.0  # half a pixel of the label, half a step of the byte
    assert off.mean().abs() < 0.25  # and no drift to one side


def test_padding_is_void_in_the_label_and_black_in_the_picture() -> None:
    image, label = coordinates()
    picture, mask = augment(crop_height=100, crop_width=120, void=111)(Example(image, label), 0)
    padded = picture[0] == 0
    assert mask.shape == (100, 120) and padded.sum() == 100 * 120 - 64 * 96
    assert torch.equal(padded, mask == 111) and not picture[:, padded].any()


def test_a_label_keeps_its_ids_under_zoom() -> None:
    """Ids must never be averaged: 0 beside 10 may not give 5."""
    image = np.zeros((64, 96, 3), np.uint8)
    label = (np.indices((64, 96)).sum(0) % 2 * 10).astype(np.uint8)
    for seed in range(4):
        _, mask = augment(crop_height=30, crop_width=40, scale_min=0.6, scale_max=1.5)(Example(image, label), seed)
        assert set(mask.unique().tolist()) == {0, 10}


def test_zooms_lie_between_their_limits_and_fill_the_range() -> None:
    image, label = coordinates()
    widths = []
    for seed in range(40):
        make = augment(crop_height=1, crop_width=1, scale_min=0.5, scale_max=2.0)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            widths.append(make._zoomed(64, 96)[1] / 96)
        make(Example(image, label), seed)
    assert 0.5 <= min(widths) < 0.65 and 1.8 < max(widths) <= 2.0


FULL: dict[str, Any] = {"crop_height": 40, "crop_width": 48, "flip": 0.5, "scale_min": 0.6, "scale_max": 1.5}
JITTER: dict[str, Any] = {"brightness": 0.35, "contrast": 0.35, "saturation": 0.35, "hue": 0.04}


def test_a_seed_decides_everything_and_another_seed_something_else() -> None:
    image, label = coordinates()
    make = augment(**FULL, **JITTER)
    first, again, other = (make(Example(image, label), seed) for seed in (5, 5, 6))
    assert torch.equal(first[0], again[0]) and torch.equal(first[1], again[1])
    assert not torch.equal(first[0], other[0]) and not torch.equal(first[1], other[1])


def test_other_random_draws_neither_steer_it_nor_notice_it() -> None:
    image, label = coordinates()
    make = augment(**FULL, **JITTER)
    torch.manual_seed(0)
    first = make(Example(image, label), 5)
    state = torch.get_rng_state()
    torch.manual_seed(123)
    torch.rand(10)
    second = make(Example(image, label), 5)
    torch.manual_seed(0)
    assert torch.equal(state, torch.get_rng_state())
    assert torch.equal(first[0], second[0]) and torch.equal(first[1], second[1])


@pytest.mark.parametrize("part", JITTER)
def test_colour_jitter_changes_colours_and_nothing_else(part: str) -> None:
    image, label = coordinates()
    image[..., 2] = 30
    plain = augment(**FULL)(Example(image, label), 5)
    jittered = augment(**FULL, **{part: JITTER[part]})(Example(image, label), 5)
    assert torch.equal(plain[1], jittered[1])
    assert plain[0].shape == jittered[0].shape and not torch.equal(plain[0], jittered[0])


@pytest.mark.parametrize("steps", [-10, 100])
def test_the_hue_turns_as_torchvision_turns_it(steps: int) -> None:
    """The change is in 8-bit hue, saturation and brightness; a grey picture stays grey."""
    picture = torch.randint(0, 256, (3, 90, 120), dtype=torch.uint8, generator=torch.Generator().manual_seed(0))
    expected = v2.functional.adjust_hue(picture, (steps / 256 + 0.5) % 1 - 0.5)
    difference = (shift_hue(picture, steps / 256).int() - expected.int()).abs()
    assert float(difference.float().mean()) < 1.5 and int(difference.max()) <= 12
    grey = picture[:1].expand(3, -1, -1)
    assert torch.equal(shift_hue(grey, steps / 256), grey)


@pytest.mark.parametrize(("share", "low", "high"), [(0.0, 0, 0), (1.0, 60, 60), (0.5, 15, 45)])
def test_flips_come_with_their_probability(share: float, low: int, high: int) -> None:
    image, label = coordinates()
    make = augment(flip=share)
    flipped = sum(bool(make(Example(image, label), seed)[1][0, 0] == 96) for seed in range(60))
    assert low <= flipped <= high


def test_pictures_are_brought_to_the_network_s_size_first() -> None:
    image, label = coordinates(32, 48)
    picture, mask = augment()(Example(image, label), 0)  # 32x48 at height 64: 64x96
    assert picture.shape == (3, 64, 96) and (mask != VOID).all()


def test_the_source_pictures_are_not_written_to() -> None:
    image, label = coordinates()
    copies = image.copy(), label.copy()
    augment(**FULL, **JITTER)(Example(image, label), 5)
    to_tensors(image, label, 64, 96)[0].zero_()
    np.testing.assert_array_equal(image, copies[0])
    np.testing.assert_array_equal(label, copies[1])


def test_corruption_changes_the_picture_by_its_seed_and_never_the_label() -> None:
    image, label = coordinates()
    plain = augment(**FULL)(Example(image, label), 5)
    make = augment(**FULL, corrupt=1.0)
    harmed, again = make(Example(image, label), 5), make(Example(image, label), 5)
    assert harmed[0].dtype == torch.uint8 and harmed[0].shape == plain[0].shape
    assert torch.equal(plain[1], harmed[1]) and torch.equal(harmed[0], again[0])
    assert not torch.equal(plain[0], harmed[0])


def test_what_robustness_is_measured_by_is_never_trained_on() -> None:
    assert set(AugmentOptions().corruptions) == set(TUNING_CORRUPTIONS) and not set(TUNING_CORRUPTIONS) & set(
        BENCHMARK_CORRUPTIONS
    )


RARE = 6
HEIGHT, WIDTH = 64, 96


def street(rows: slice, columns: slice) -> Example:
    """Class 3, whose red is 10, with a patch of the rare class, whose red is 200."""
    label = np.full((HEIGHT, WIDTH), 3, np.uint8)
    label[rows, columns] = RARE
    image = np.where(label[..., None] == RARE, 200, 10).astype(np.uint8).repeat(3, 2)
    return Example(image, label)


def test_rare_is_what_has_less_than_half_of_the_median_class_where_it_occurs() -> None:
    label = np.zeros((10, 100), np.uint8)  # 800, 100, 60, 40 pixels: the median is 80
    label[8], label[9, :60], label[9, 60:] = 1, 2, 3
    assert rare_classes(measure([(np.zeros((10, 100, 3), np.uint8), label)], CAMVID)) == ()
    label[9, 60:80] = 0  # 20 left, less than half of 80
    assert rare_classes(measure([(np.zeros((10, 100, 3), np.uint8), label)], CAMVID)) == (3,)


def test_crops_around_it_put_it_everywhere() -> None:
    mask = torch.zeros(HEIGHT, WIDTH, dtype=torch.uint8)
    mask[30, 50] = RARE
    torch.manual_seed(0)
    places = {place_of(mask, (RARE,), (16, 24)) for _ in range(300)}
    assert {30 - place[0] for place in places if place} == set(range(16))
    assert place_of(mask, (5,), (16, 24)) is None and place_of(mask, (RARE,), (HEIGHT + 1, 24)) is None


def test_only_rare_things_are_pasted_and_their_labels_with_them() -> None:
    own, other = street(slice(0, 0), slice(0, 0)), street(slice(20, 30), slice(40, 60))
    other.image[other.label == 3] = 77
    picture, target = Augment(STILL, HEIGHT, 255, (RARE,))(own, 3, (other, RARE))
    thing = torch.from_numpy(other.label == RARE)
    assert torch.equal(target == RARE, thing)
    assert torch.equal(picture[0] == 200, thing) and not (picture == 77).any()


def test_nothing_rare_to_paste_changes_nothing() -> None:
    picture, label = torch.rand(3, 4, 5), torch.zeros(4, 5, dtype=torch.uint8)
    found = paste((picture, label), (torch.rand(3, 4, 5), label + 1), (RARE,))
    assert torch.equal(found[0], picture) and torch.equal(found[1], label)


def test_every_rare_class_is_drawn_as_often_as_the_others() -> None:
    pixels = 4 * np.eye(3, dtype=np.int64)[[0, 0, 0, 0, 0, 0, 0, 1]]
    pictures = RarePictures(pixels, (0, 1, 2))
    drawn = [pictures.draw(seed) for seed in range(200)]
    assert {pair for pair in drawn if pair and pair[1] == 1} == {(7, 1)}
    assert 70 < sum(pair is not None and pair[1] == 1 for pair in drawn) < 130
    assert RarePictures(pixels, (2,)).draw(0) is None
