"""Held-out blocks and recordings: what is trained on, what is not used, and on what familiarity is fitted."""

import dataclasses
from pathlib import Path

import pytest
from made.pictures import labels, picture, save_split
from made.trainings import camvid_names
from refusals import refusal

from steadyseg.app.data_sets import DATA
from steadyseg.core.classes import CAMVID
from steadyseg.core.model.checkpoint import read_meta
from steadyseg.seg.data.held_out import (
    CAMVID_STRETCHES,
    GUARD,
    MIN_FRAMES,
    camvid_stretches,
    divide,
    hold_out,
    in_order,
    read_stretches,
    recording_of,
)
from steadyseg.seg.data.label_folder import ImageFolderSplit, open_split
from steadyseg.seg.familiarity.frames import BLOCK, GAP, Frames, hold_out_blocks
from steadyseg.seg.pretrained import find_checkpoint
from steadyseg.seg.training_set import split_held_out
from steadyseg.street.drive import LOOKS, StreetSet

REAL = DATA / "camvid"
NAMES = [f"a_{i}" for i in range(8)] + [f"b_{i}" for i in range(6)]


def test_a_stretch_loses_its_neighbours_of_the_same_recording() -> None:
    found = hold_out(NAMES, [("a_5", "a_6"), ("b_3", "b_3")], guard=2)
    assert found.held_out == (5, 6, 11)
    assert found.trained == (0, 1, 2, 8)  # a_3, a_4, a_7 and b_1, b_2, b_4, b_5 lie beside a block


def test_nothing_is_lost_without_a_stretch() -> None:
    found = hold_out(NAMES, ())
    assert (found.trained, found.held_out) == (tuple(range(14)), ())
    assert camvid_stretches(NAMES) == ()


def test_names_without_a_recording_are_one() -> None:
    assert hold_out(["0", "1", "2", "3", "4"], [("1", "2")], guard=1).trained == (4,)


@pytest.mark.parametrize(
    ("stretch", "words"),
    [(("a_5", "a_9"), "no image a_9"), (("a_5", "a_4"), "first must come before"), (("a_7", "b_0"), "one recording")],
)
def test_a_stretch_that_is_none_is_named(stretch: tuple[str, str], words: str) -> None:
    line = refusal(hold_out, NAMES, [stretch])
    assert f"{stretch[0]} {stretch[1]}" in line and words in line


def test_what_is_left_of_camvid_s_stretches_is_held_out() -> None:
    names, absent = camvid_names(), CAMVID_STRETCHES[1][1]
    left = [name for name in names if name != absent]
    held = {names[place] for place in hold_out(names, CAMVID_STRETCHES).held_out}
    assert {left[place] for place in hold_out(left, camvid_stretches(left)).held_out} == held - {absent}


def test_a_file_has_a_stretch_on_each_line(tmp_path: Path) -> None:
    file = tmp_path / "stretches.txt"
    file.write_text("a_1.png a_3.png\n\nb.mp4_0 b.mp4_0\n")
    assert hold_out(["a_0", "a_1", "a_2", "a_3", "b.mp4_0"], read_stretches(file)).held_out == (1, 2, 3, 4)
    file.write_text("a_1\n")
    assert str(file) in refusal(read_stretches, file) and "the last image" in refusal(read_stretches, file)
    file.write_text("\n")
    assert "--hold-out none" in refusal(read_stretches, file)
    assert "cannot be read" in refusal(read_stretches, tmp_path / "absent.txt")


def test_every_twentieth_street_is_held_out_whole() -> None:
    street = StreetSet()
    split = split_held_out(street, Path("auto"))
    assert len(split.trained) == 1140 and len(split.held_out) == 60
    assert not {i // LOOKS for i in split.trained} & {i // LOOKS for i in split.held_out}
    assert split_held_out(street, Path("none")).held_out == ()
    assert "the street has none" in refusal(split_held_out, street, Path("list.txt"))


@pytest.mark.skipif(not REAL.is_dir(), reason="CamVid is not here")
def test_camvid_s_stretches_are_forty_of_its_stills_far_from_val() -> None:
    names = [example.name for example in open_split(REAL, "train", CAMVID).examples]
    assert camvid_stretches(names) == CAMVID_STRETCHES
    split = hold_out(names, CAMVID_STRETCHES)
    counts = {name: sum(names[i].startswith(name) for i in split.held_out) for name in ("0001TP", "0006R0", "0016E5")}
    assert (len(names), len(split.trained), counts) == (367, 315, {"0001TP": 8, "0006R0": 12, "0016E5": 20})
    assert min(abs(i - j) for i in split.trained for j in split.held_out) == GUARD + 1
    val = [int(example.name.split("_")[1]) for example in open_split(REAL, "val", CAMVID).examples]
    frames = [int(names[i].split("_")[1]) for i in split.held_out if names[i].startswith("0016E5")]
    assert min(abs(a - b) for a in val for b in frames) > 60 * 30


@pytest.mark.parametrize(
    ("name", "recording"),
    [
        ("0001TP_008550", "0001TP"),
        ("0006R0_f03330", "0006R0"),
        ("drive 2-frame12", "drive 2"),
        ("frame_0007", ""),
        ("frankfurt_000000_000294", "frankfurt_000000"),
        ("beach", "beach"),
    ],
)
def test_a_recording_is_the_name_without_its_last_number(name: str, recording: str) -> None:
    assert recording_of(name) == recording


def test_frames_are_in_the_order_of_their_numbers() -> None:
    assert in_order(["b_1", "a_10", "a_9"]) == ["a_9", "a_10", "b_1"]


def test_recordings_are_never_cut_where_there_are_enough() -> None:
    names = [f"{drive}_{index}" for drive in "abcdefgh" for index in range(10)]
    splits, remarks = divide(names, {"val": 0.25, "test": 0.125})
    assert not remarks and [*splits.values()].count("val") == 20 and [*splits.values()].count("test") == 10
    assert all(len({splits[f"{drive}_{index}"] for index in range(10)}) == 1 for drive in "abcdefgh")


def test_the_end_of_a_lone_recording_is_kept_apart_by_a_guard_and_said() -> None:
    splits, (remark,) = divide([f"a_{index}" for index in range(50)], {"val": 0.2})
    assert [splits.get(f"a_{index}") for index in range(38 - 1, 50)] == ["train"] + GUARD * [None] + 10 * ["val"]
    assert "the last 10 frames of the recording a" in remark


def test_few_pictures_are_not_divided_and_that_is_said() -> None:
    splits, (remark,) = divide([str(index) for index in range(MIN_FRAMES - 1)], {"val": 0.2})
    assert set(splits.values()) == {"train"} and "too few to divide" in remark


COUNT = 2 * BLOCK + 2 * GAP


@pytest.fixture(scope="module")
def split(tmp_path_factory: pytest.TempPathFactory) -> ImageFolderSplit:
    root = tmp_path_factory.mktemp("data")
    save_split(root, "train", ((f"a_{number:03}", picture(number), labels(number)) for number in range(COUNT)))
    return open_split(root, "train")


def frames(split: ImageFolderSplit, held_out: object) -> Frames:
    meta = read_meta(find_checkpoint("street-tiny"))
    return Frames.of(split, dataclasses.replace(meta, training=meta.training | {"held_out": held_out}))


def test_the_expected_accuracy_is_fitted_on_what_the_record_lists(split: ImageFolderSplit) -> None:
    found = frames(split, ["a_003", "a_004", "a_025"])
    assert found.untrained == (3, 4, 25)
    assert not {3, 4} & set(found.fitted) and set(found.fitted) | {3, 4} == set(range(10)) | set(range(50, COUNT))
    assert found.note == f"{BLOCK - 1} of the {BLOCK} frames of the blocks were trained on"


@pytest.mark.parametrize("held_out", [None, 18, [], ["a_003", "elsewhere_1"]], ids=str)
def test_a_record_that_does_not_tell_is_noted(split: ImageFolderSplit, held_out: object) -> None:
    found = frames(split, held_out)
    assert found.untrained == found.held_out and "may have learnt" in found.note


def test_the_middle_of_every_recording_is_held_out_with_gaps() -> None:
    names = [f"a_{i:03}" for i in range(10)] + [f"b_{i:03}" for i in range(8)]
    fitted, held_out = hold_out_blocks(names, block=2, gap=1)
    assert held_out == [4, 5, 13, 14]
    assert fitted == [0, 1, 2, 7, 8, 9, 10, 11, 16, 17]
    assert "recording b has 5 frames" in refusal(hold_out_blocks, [f"b_{i}" for i in range(5)], 2, 1)
