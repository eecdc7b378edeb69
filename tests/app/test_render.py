"""Pictures of labels and uncertainty, and their legends."""

import dataclasses
from pathlib import Path
from typing import get_args

import av
import cv2
import numpy as np
import pytest
from made.methods import opened_by_torch

from steadyseg.app.cli import main
from steadyseg.app.contact_sheet import Cell, colored, strip, write_sheet
from steadyseg.app.palette import (
    STRENGTH,
    colour_labels,
    display_classes,
    draw_contours,
    draw_overlay,
    drawable,
)
from steadyseg.app.video.legend import HOLD, Legend, draw_legend
from steadyseg.app.video.render import AMBER, GREEN, LARGEST_SET, RED, banner_color, draw_set_sizes, draw_uncertainty
from steadyseg.app.video.verdict import describe_frame, describe_stream, stream_verdict
from steadyseg.app.video.views import MAP_NAMES, SCALES, Painter, draw_map, draw_segmentation
from steadyseg.core.classes import CAMVID, CAMVID_31, ClassList
from steadyseg.core.errors import InputError
from steadyseg.core.frame import Frame, Maps, Verdict
from steadyseg.core.model.checkpoint import load_checkpoint, save_checkpoint
from steadyseg.core.segmenter import segment, verdict_of
from steadyseg.street.drive import Street

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


@pytest.mark.parametrize(
    ("view", "legend"), [("overlay", False), *((view, True) for view in ("overlay", "side-by-side", *MAP_NAMES))]
)
def test_every_view_has_the_size_it_announces(view: str, legend: bool) -> None:
    probs = np.full((11, 5, 5), 1 / 11, np.float32)
    maps = dataclasses.replace(MAPS, energy=ENTROPY, probs=probs)
    painter = Painter(view, CAMVID, threshold=0.9, legend=legend)
    picture = painter(Frame(IMAGE, 0, 0.0), maps)
    assert picture.dtype == np.uint8
    assert picture.shape == (*painter.size(30, 20)[::-1], 3) and (picture.shape[0] > 20) == legend


def test_side_by_side_is_the_overlay_with_contours_and_then_the_uncertainty() -> None:
    overlay = draw_overlay(IMAGE, LABEL, PALETTE, confidence=MAPS.confidence)
    draw_contours(overlay, LABEL, PALETTE)
    both = Painter("side-by-side", CAMVID)(Frame(IMAGE, 0, 0.0), MAPS)[:20]
    assert (both[:, :30] == overlay).all()
    assert (both[:, 30:] == draw_uncertainty(ENTROPY)).all()


@pytest.mark.parametrize(
    ("verdict", "words"),
    [
        ("expected", "about 92 % right"),
        ("doubtful", "few labels can be trusted here: about 92 % right"),
        ("unlike", "few labels can be trusted here: this does not look like the training data"),
        ("no statistics", "unverified: no expected accuracy was fitted"),
        ("not calibrated", "not calibrated: confidence is the network's own"),
        ("no answer", "no answer: the logits are not finite"),
    ],
)
def test_the_words_of_a_frame_follow_from_its_verdict(verdict: Verdict, words: str) -> None:
    assert describe_frame(dataclasses.replace(MAPS, expected_accuracy=0.924, verdict=verdict)) == words


RIGHT = "about 92 % right (87 % to 97 %)"


@pytest.mark.parametrize(
    ("verdicts", "words"),
    [
        ({"expected": 0.95, "doubtful": 0.05}, RIGHT),
        ({"expected": 0.8, "doubtful": 0.2}, f"few labels can be trusted in 20 % of the frames; {RIGHT}"),
        (
            {"unlike": 0.6, "doubtful": 0.38, "expected": 0.02},
            f"few labels can be trusted in 98 % of the frames; 60 % of the frames do not look like a street; {RIGHT}",
        ),
        ({"doubtful": 1.0}, f"few labels can be trusted; {RIGHT}"),
        ({"no answer": 0.5, "expected": 0.5}, f"no answer: 50 % of the frames; {RIGHT}"),
        ({"no statistics": 1.0}, "unverified: no expected accuracy was fitted"),
    ],
)
def test_the_verdict_of_a_file_begins_with_the_worst(verdicts: dict[Verdict, float], words: str) -> None:
    file = {"verdicts": verdicts, "state": stream_verdict(verdicts), "training_data": "camvid"}
    expected = {"expected_accuracy": 0.924, "expected_accuracy_interval": [0.874, 0.974]}
    assert describe_stream(file | expected) == words


@pytest.mark.parametrize(("right", "color"), [(0.85, GREEN), (1.0, GREEN), (0.5, AMBER), (0.49, RED)])
def test_the_line_of_a_frame_goes_from_green_to_amber_and_then_is_red(right: float, color: tuple[int, ...]) -> None:
    verdict = verdict_of(True, 0.5, right, True)
    assert banner_color(dataclasses.replace(MAPS, expected_accuracy=right, verdict=verdict)) == color


def test_labels_have_the_same_colours_and_uncertainty_whatever_the_verdict() -> None:
    """`video` and the page draw through these functions."""
    drawn = []
    for verdict in get_args(Verdict):
        maps = dataclasses.replace(MAPS, verdict=verdict, familiarity=0.001)
        drawn.append((draw_segmentation(IMAGE, maps, PALETTE), draw_map(maps, "uncertainty")))
    for overlay, uncertainty in drawn:
        assert (overlay == drawn[0][0]).all() and (uncertainty == draw_uncertainty(MAPS.entropy)).all()
    assert np.ptp(drawn[0][0].astype(int) - IMAGE, axis=2).max() > 50
    nowhere = dataclasses.replace(MAPS, confidence=np.zeros_like(LABEL))  # not finite
    assert (draw_segmentation(IMAGE, nowhere, PALETTE) == IMAGE).all()


def test_colours_fade_with_the_confidence() -> None:
    """Full strength from 0.9 on, 40 % of it up to 0.4, and over a quarter of the picture above 0.55."""
    confidence = np.arange(256, dtype=np.uint8)[None]
    image, label = np.zeros((1, 256, 3), np.uint8), np.zeros((1, 256), np.uint8)
    shown = draw_overlay(image, label, np.full((1, 3), 250, np.uint8), 0.5, confidence)[0, :, 0] / 250
    assert shown[:102] == pytest.approx(0.2, abs=0.01) and shown[230:] == pytest.approx(0.5, abs=0.01)
    assert shown[166] == pytest.approx(0.5 * (0.4 + 0.6 * (166 / 255 - 0.4) / 0.5), abs=0.01)
    assert (shown[141:] > 0.25).all() and (np.diff(shown) >= 0).all()


def maps_with(probs: np.ndarray) -> Maps:
    none = np.zeros(probs.shape[1:], np.uint8)
    return Maps(none, none, none, none, probs.astype(np.float32))


def test_shades_count_the_classes_within_the_threshold() -> None:
    sure = [0.91] + [0.01] * 9  # 1 - 0.94 = 0.06: one class reaches it
    torn = [0.5, 0.4] + [0.0125] * 8  # two classes
    lost = [0.1] * 10  # all ten, drawn as LARGEST_SET
    shades = draw_set_sizes(maps_with(np.array([[sure, torn, lost]]).transpose(2, 0, 1)), 0.94)
    assert shades.tolist() == [[0, 255 // (LARGEST_SET - 1), 255]]


@pytest.mark.slow
def test_a_video_shows_them(model: str, tmp_path: Path) -> None:
    """At the median of the second class's probability, half of the pixels have two classes or more."""
    segmenter = opened_by_torch(model, mode="vq-dnn", motion=True, keep_probs=True)
    _, maps = next(iter(segment(Street().frames(1), segmenter)))
    assert maps.probs is not None
    second = float(np.median(np.sort(maps.probs, axis=0)[-2]))
    tensors, meta = load_checkpoint(Path(model))
    conformal = {"coverage": 0.9, "lac": 1.0 - second}
    fitted = (meta.fit(segmenter.method) or {}) | {"conformal": conformal}
    model = str(tmp_path / "m.safetensors")
    save_checkpoint(Path(model), tensors, meta.with_fit(segmenter.method, fitted))
    pictures = {}
    for view in ("set-size", "uncertainty"):
        path = tmp_path / f"{view}.mp4"
        flags = ["-o", str(path), "--model", model, "--view", view, "--max-frames", "2", "--backend", "torch"]
        assert main(["video", "street", *flags]) == 0
        with av.open(str(path)) as written:
            pictures[view] = next(written.decode(video=0)).to_ndarray(format="gray").astype(int)
    black = (pictures["set-size"] < 20).mean()
    assert 0.3 < black < 0.7
    assert np.abs(pictures["set-size"] - pictures["uncertainty"]).mean() > 5


CLASSES = display_classes(CAMVID)


def maps_of(*present: int) -> Maps:
    """240 x 320 maps with equal stripes of these classes."""
    label = np.repeat(np.array(present, np.uint8), -(-320 // len(present)))[:320] * np.ones((240, 1), np.uint8)
    return Maps(label, label, label, label)


def listed(legend: Legend, maps: Maps) -> set[int]:
    """Classes whose colour fills a square of the legend below a grey picture."""
    drawn = legend.add(np.full((240, 320, 3), 90, np.uint8), maps)[240:].reshape(-1, 3)
    return {number for number, color in enumerate(CLASSES.colors) if (drawn == color).all(1).sum() > 40}


def test_it_lists_the_classes_that_occur_and_drops_one_that_is_gone() -> None:
    legend = Legend(CLASSES, (None,))
    assert listed(legend, maps_of(3, 8)) == {3, 8}
    assert all(listed(legend, maps_of(3)) == {3, 8} for _ in range(HOLD - 1))
    assert listed(legend, maps_of(3)) == {3}


def test_classes_without_room_are_counted_and_keep_the_size() -> None:
    legend = Legend(CAMVID_31, (None,))
    sizes = {legend.add(np.zeros((120, 160, 3), np.uint8), maps_of(*range(count))).shape for count in (1, 31)}
    assert sizes == {(*legend.size(160, 120)[::-1], 3)} and legend.size(160, 120)[1] % 2 == 0


def test_a_map_has_the_bar_of_its_colours_and_counts_have_a_square_each() -> None:
    grey = np.full((240, 320, 3), 90, np.uint8)
    bar = Legend(CLASSES, (SCALES["uncertainty"],)).add(grey, maps_of(0))[240:]
    colors = {tuple(color) for color in bar.reshape(-1, 3).tolist()}
    scale = {tuple(color) for color in draw_uncertainty(np.arange(256, dtype=np.uint8)[None])[0].tolist()}
    assert len(scale & colors) > 0.5 * len(scale)
    squares = Legend(CLASSES, (SCALES["set-size"],)).add(grey, maps_of(0))[240:].reshape(-1, 3)
    frequent = np.unique(squares, axis=0, return_counts=True)[1]
    assert (frequent > 60).sum() >= 6


def test_every_two_display_colours_differ_and_the_others_stay() -> None:
    colors = np.array(CLASSES.colors, np.float32)
    pale = 255 - STRENGTH[0][1] * (255 - colors)  # over white a Car of low confidence was a sure Fence
    values, tints = (cv2.cvtColor(one[None].astype(np.float32) / 255, cv2.COLOR_RGB2LAB)[0] for one in (colors, pale))
    apart = np.linalg.norm(values[:, None] - values[None], axis=2) + 1e3 * np.eye(len(values))
    assert apart.min() >= 40
    car, fence = (CAMVID.names.index(name) for name in ("Car", "Fence"))
    assert min(np.linalg.norm(tints[car] - values[fence]), np.linalg.norm(tints[fence] - values[car])) > 20
    kept = [name for name, own, shown in zip(CAMVID.names, CAMVID.colors, CLASSES.colors, strict=True) if own == shown]
    assert kept == "Sky Building Pole Road Pavement Pedestrian Bicyclist".split()


@pytest.mark.parametrize("pair", [("\u00f6", "\u00e4"), ("\u9053\u8def", "\u8f66\u8f86"), ("\u0442", "\u043c")])
def test_names_beyond_ascii_are_told_apart(tmp_path: Path, pair: tuple[str, str]) -> None:
    """The font has a box for each such letter, so that two classes had one name."""
    classes = [ClassList((name, "z"), 2 * ((9, 9, 9),)) for name in pair]
    one, other = (draw_legend(320, 240, each, (None,), (0,)) for each in classes)
    assert not np.array_equal(one, other)
    for each in classes:
        write_sheet(tmp_path / f"{each.names[0]}.png", [Cell("a", strip(np.zeros((4, 4, 3), np.uint8)))], each)
    assert len({path.read_bytes() for path in tmp_path.iterdir()}) == 2
    assert drawable(("a", pair[0]))[0] == "a" and drawable(("a", pair[0]))[1].startswith("1: ")


def test_a_contact_sheet_has_the_colours_of_a_video() -> None:
    picture, maps = np.full((240, 320, 3), 90, np.uint8), maps_of(*range(1, len(CAMVID)))
    sure = dataclasses.replace(maps, confidence=np.full_like(maps.label, 255))
    drawn = draw_segmentation(picture, sure, CLASSES.palette()).astype(int)
    assert np.abs(colored(picture, maps.label, CAMVID) - drawn).max() <= 2
