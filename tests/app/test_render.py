"""Colours over pictures, and uncertainty as a picture that everybody can read."""

import dataclasses
from typing import get_args

import cv2
import numpy as np
import pytest

from app.video.render import (
    View,
    colour_labels,
    describe_novelty,
    draw_overlay,
    draw_uncertainty,
    render,
    rendered_size,
    side_by_side,
)
from core.classes import CAMVID
from core.frame import Frame, Maps

RNG = np.random.default_rng(0)
IMAGE = RNG.integers(0, 255, (20, 30, 3), np.uint8)
LABEL = RNG.integers(0, 11, (20, 30), np.uint8)
ENTROPY = RNG.integers(0, 255, (20, 30), np.uint8)
MAPS = Maps(label=LABEL, confidence=255 - ENTROPY, entropy=ENTROPY, disagreement=ENTROPY // 2)
PALETTE = CAMVID.palette()


@pytest.mark.parametrize("opacity", [0.0, 0.3, 0.5, 1.0])
def test_the_overlay_is_the_weighted_mean_of_picture_and_colours(opacity: float) -> None:
    expected = (1 - opacity) * IMAGE + opacity * PALETTE[LABEL]
    assert np.abs(draw_overlay(IMAGE, LABEL, PALETTE, opacity) - expected).max() <= 0.51


def test_colours_are_looked_up_in_rgb() -> None:
    assert (colour_labels(LABEL, PALETTE) == PALETTE[LABEL]).all()


def test_the_inputs_stay_as_they_were() -> None:
    image, label = IMAGE.copy(), LABEL.copy()
    render(Frame(image, 0, 0.0), MAPS, "side-by-side", CAMVID)
    assert (image == IMAGE).all() and (label == LABEL).all()


def test_uncertainty_runs_from_black_to_pale_yellow_and_gets_lighter_with_every_step() -> None:
    colors = draw_uncertainty(np.arange(256, dtype=np.uint8)[None])[0]
    assert colors[0].max() < 8
    assert colors[-1].min() > 150 and colors[-1, 2] < colors[-1, 0]  # blue is the weakest: RGB, not BGR
    lightness = cv2.cvtColor(colors[None].astype(np.float32) / 255, cv2.COLOR_RGB2LAB)[0, :, 0]
    assert (np.diff(lightness) > 0).all()
    assert lightness[0] < 1 and lightness[-1] > 97


def test_uncertainty_keeps_its_order_for_colour_blind_readers() -> None:
    """Deuteranopia and protanopia after Vienot, Brettel and Mollon (1999), in linear light."""
    colors = draw_uncertainty(np.arange(256, dtype=np.uint8)[None])[0]
    linear = (colors / 255.0) ** 2.2
    for row in ((0.29275, 0.70725, 0.0), (0.11238, 0.88762, 0.0)):
        seen = np.stack((linear @ row, linear @ row, linear[:, 2]), axis=1)
        brightness = seen @ (0.2126, 0.7152, 0.0722)
        every_eighth = brightness[::8]
        assert (np.diff(every_eighth) > 0).all()


@pytest.mark.parametrize("view", get_args(View))
def test_every_view_has_the_size_it_announces(view: str) -> None:
    picture = render(Frame(IMAGE, 0, 0.0), MAPS, view, CAMVID)
    assert picture.dtype == np.uint8
    assert picture.shape == (*rendered_size(view, 30, 20)[::-1], 3)


def test_side_by_side_is_the_overlay_and_then_the_uncertainty() -> None:
    both = render(Frame(IMAGE, 0, 0.0), MAPS, "side-by-side", CAMVID)
    assert (both[:, :30] == draw_overlay(IMAGE, LABEL, PALETTE)).all()
    assert (both[:, 30:] == draw_uncertainty(ENTROPY)).all()


def test_pictures_of_different_height_do_not_go_side_by_side() -> None:
    with pytest.raises(ValueError, match="equal heights, got 20 and 10"):
        side_by_side(IMAGE, IMAGE[:10])


def test_no_accuracy_is_said_of_novel_frames() -> None:
    said = [
        describe_novelty(dataclasses.replace(MAPS, novelty=one, expected_accuracy=0.924)) for one in (0.5, 0.1, 0.05)
    ]
    assert said == ["familiar, about 92% right", "unusual, about 92% right", "novel"]
    assert describe_novelty(dataclasses.replace(MAPS, novelty=0.5)) == "familiar"
