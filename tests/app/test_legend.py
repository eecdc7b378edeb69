"""The legend below a picture, and the colours that it names."""

from pathlib import Path

import numpy as np
import pytest

from steadyseg.app.contact_sheet import Cell, colored, strip, write_sheet
from steadyseg.app.palette import APART, display_classes, drawable, lab
from steadyseg.app.video.legend import HOLD, Legend, draw_legend
from steadyseg.app.video.render import draw_uncertainty
from steadyseg.app.video.views import SCALES, draw_segmentation
from steadyseg.core.classes import CAMVID, CAMVID_31, ClassList
from steadyseg.core.frame import Maps

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
    many = display_classes(CAMVID_31)
    legend = Legend(many, (None,))
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
    values = lab(np.array(CLASSES.colors))
    apart = np.linalg.norm(values[:, None] - values[None], axis=2) + 1e3 * np.eye(len(values))
    assert apart.min() >= APART
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
    assert np.array_equal(colored(picture, maps.label, CAMVID), draw_segmentation(picture, maps, CLASSES.palette()))
