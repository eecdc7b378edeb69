"""Colours over pictures, and uncertainty as a picture that everybody can read."""

import dataclasses
from typing import Any

import cv2
import numpy as np
import pytest

from steadyseg.app.palette import colour_labels, draw_contours, draw_overlay
from steadyseg.app.video.render import draw_uncertainty
from steadyseg.app.video.verdict import describe_frame, describe_stream
from steadyseg.app.video.views import MAP_NAMES, Painter, draw_map, draw_segmentation
from steadyseg.core.classes import CAMVID
from steadyseg.core.errors import InputError
from steadyseg.core.frame import Below, Frame, Maps

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


def test_colours_are_looked_up_in_rgb_and_labels_beyond_a_short_palette_are_black() -> None:
    assert (colour_labels(LABEL, PALETTE) == PALETTE[LABEL]).all()
    few = colour_labels(LABEL, PALETTE[:5])
    assert (few[LABEL < 5] == PALETTE[LABEL[LABEL < 5]]).all() and not few[LABEL >= 5].any()
    with pytest.raises(InputError, match=r"at most 256 colours, got \(300, 3\) uint8"):
        draw_overlay(IMAGE, LABEL, np.zeros((300, 3), np.uint8))


def test_contours_have_the_full_colour_of_each_side_and_leave_the_rest() -> None:
    label = np.full((40, 60), 3, np.uint8)
    label[:, 30:] = 8
    picture = np.full((40, 60, 3), 90, np.uint8)
    draw_contours(picture, label, PALETTE)
    assert (picture[:, 29] == PALETTE[3]).all() and (picture[:, 30] == PALETTE[8]).all()
    assert (picture[:, :29] == 90).all() and (picture[:, 31:] == 90).all()


def test_the_inputs_stay_as_they_were() -> None:
    image, label = IMAGE.copy(), LABEL.copy()
    Painter("side-by-side", CAMVID)(Frame(image, 0, 0.0), MAPS)
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


@pytest.mark.parametrize("legend", [True, False])
@pytest.mark.parametrize("view", ["overlay", "side-by-side", *MAP_NAMES])
def test_every_view_has_the_size_it_announces(view: str, legend: bool) -> None:
    probs = np.full((11, 5, 5), 1 / 11, np.float32)
    maps = dataclasses.replace(MAPS, energy=ENTROPY, probs=probs)
    painter = Painter(view, CAMVID, threshold=0.9, legend=legend)
    picture = painter(Frame(IMAGE, 0, 0.0), maps)
    assert picture.dtype == np.uint8
    assert picture.shape == (*painter.size(30, 20)[::-1], 3) and (picture.shape[0] > 20) == legend


def test_side_by_side_is_the_overlay_with_contours_and_then_the_uncertainty() -> None:
    overlay = draw_overlay(IMAGE, LABEL, PALETTE)
    draw_contours(overlay, LABEL, PALETTE)
    both = Painter("side-by-side", CAMVID)(Frame(IMAGE, 0, 0.0), MAPS)[:20]
    assert (both[:, :30] == overlay).all()
    assert (both[:, 30:] == draw_uncertainty(ENTROPY)).all()


def test_no_accuracy_is_said_of_unfamiliar_frames() -> None:
    right = dataclasses.replace(MAPS, expected_accuracy=0.924)
    said = [describe_frame(dataclasses.replace(right, familiarity=one)) for one in (0.5, 0.1, 0.05)]
    assert said == [
        "familiar (familiarity 50 %), about 92 % right",
        "unusual (familiarity 10 %), about 92 % right",
        "unfamiliar (familiarity 5 %)",
    ]
    low = dataclasses.replace(MAPS, familiarity=0.5, expected_accuracy=0.764, below=Below(0.8, 12.4))
    assert describe_frame(low) == (
        "expected accuracy below 80 % for 12 s; familiar (familiarity 50 %), about 76 % right"
    )
    assert describe_frame(dataclasses.replace(low, familiarity=0.05)) == "unfamiliar (familiarity 5 %)"
    there = dataclasses.replace(MAPS, familiarity=0.5, expected_accuracy=0.924, ood_s=12.4)
    assert describe_frame(there) == "unfamiliar for 12 s: another place than it was trained for"


TIMES = [{"limit": 0.8, "since_s": 65.4, "alarm_s": 68.5, "until_s": 71.0}, {}]


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({}, "familiar: familiarity 25 %; 5 % of the frames unfamiliar; about 92 % right in the others"),
        (
            {"low_accuracies": 2, "low_accuracy": TIMES},
            "expected accuracy below 80 % from 1:05 to 1:11, and 1 more; familiar: familiarity 25 %; 5 % of the frames "
            "unfamiliar; about 92 % right in the others",
        ),
        (
            {"unfamiliar_share": 0.29, "ood_alarms": 1},
            "partly unfamiliar: 29 % of the frames; 1 alarm of another place than it was trained for; about 92 % right "
            "in the others",
        ),
        ({"unfamiliar_share": 0.98}, "unfamiliar: 98 % of the frames"),
        (
            {"unfamiliar_share": 0.98, "resets": {"not_finite": 19}},
            "no answer: 50 % of the frames; unfamiliar: 98 % of the frames",
        ),
    ],
)
def test_the_verdict_of_a_file_begins_with_the_worst(more: dict[str, Any], words: str) -> None:
    file = {"frames": 38, "unfamiliar_share": 0.05, "ood_alarms": 0, "resets": {"not_finite": 0}}
    file |= {"familiarity_p50": 0.25, "expected_accuracy": 0.924, "low_accuracies": 0}
    assert describe_stream(file | more) == words


def test_an_unfamiliar_frame_has_no_colours_and_raised_uncertainty() -> None:
    """`video`, `--grid` and the page draw through these functions."""
    known, novel, nowhere = (
        dataclasses.replace(MAPS, familiarity=one, ood_s=alarm)
        for one, alarm in ((0.5, None), (0.05, None), (0.5, 3.0))
    )
    for maps in (novel, nowhere):
        overlay = draw_segmentation(IMAGE, maps, PALETTE)
        assert (overlay.min(2) == overlay.max(2)).all()
        assert draw_map(maps, "uncertainty").sum(2).min() >= draw_uncertainty(np.full((1, 1), 127, np.uint8)).sum()
    assert np.ptp(draw_segmentation(IMAGE, known, PALETTE), axis=2).max() > 50
    assert (draw_map(known, "uncertainty") == draw_uncertainty(known.entropy)).all()
