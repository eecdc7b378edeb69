"""Recordings by the names of their frames, and splits that keep neighbours together."""

import pytest

from steadyseg.seg.data.held_out import GUARD, MIN_FRAMES, divide, in_order, recording_of


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
