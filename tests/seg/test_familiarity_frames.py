"""The frames on which familiarity statistics are fitted: what its training held out is fitted on last and never
before."""

import dataclasses

import pytest
from made.pictures import labels, picture, save_split
from refusals import refusal

from steadyseg.core.model.checkpoint import read_meta
from steadyseg.seg.data.label_folder import ImageFolderSplit, open_split
from steadyseg.seg.familiarity.frames import BLOCK, GAP, Frames, hold_out_blocks
from steadyseg.seg.pretrained import find_checkpoint

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
