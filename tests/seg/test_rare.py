"""Rare classes: which they are, crops that hold them, and what is cut out of other pictures."""

import numpy as np
import torch
from test_augment import STILL

from steadyseg.core.classes import CAMVID
from steadyseg.seg.data.augment import Augment, Example
from steadyseg.seg.data.rare import RarePictures, paste, place_of, rare_classes
from steadyseg.seg.data.statistics import measure

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
