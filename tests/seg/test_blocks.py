"""Blocks of neighbouring frames, with gaps around them."""

from steadyseg.seg.novelty.frames import hold_out_blocks
from tests.refusals import refusal


def test_the_middle_of_every_recording_is_held_out_with_gaps() -> None:
    names = [f"a_{i:03}" for i in range(10)] + [f"b_{i:03}" for i in range(8)]
    fitted, held_out = hold_out_blocks(names, block=2, gap=1)
    assert held_out == [4, 5, 13, 14]
    assert fitted == [0, 1, 2, 7, 8, 9, 10, 11, 16, 17]


def test_a_recording_that_is_too_short_is_named() -> None:
    assert "recording b has 5 frames" in refusal(hold_out_blocks, [f"b_{i}" for i in range(5)], 2, 1)
