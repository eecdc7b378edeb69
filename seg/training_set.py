"""The images of a segmentation training: their source, and those that are held out."""

from collections.abc import Sequence
from pathlib import Path

from core.classes import CAMVID, ClassList
from core.errors import InputError
from seg.data.camvid import ImageFolderSplit, open_split, read_names
from seg.data.held_out import HeldOut, camvid_stretches, hold_out, read_stretches
from seg.options import SegTrainConfig
from seg.street.training_set import StreetSet

STREET_ASPECT = 4 / 3
"""Width over height of the street's pictures, as CamVid's."""


def open_training_set(config: SegTrainConfig, classes: ClassList) -> StreetSet | ImageFolderSplit:
    """Opens the street, or the train split of the folder without the excluded images."""
    if str(config.data) == "street":
        if config.exclude:
            raise InputError("--exclude names images of a data folder; the street has none")
        if classes != CAMVID:
            raise InputError("the street is labelled with CamVid's 11 classes; leave out --classes")
        return StreetSet(height=config.size, width=round(STREET_ASPECT * config.size))
    split = open_split(config.data, "train", classes)
    return split.without(read_names(config.exclude)) if config.exclude else split


def split_held_out(source: StreetSet | ImageFolderSplit, choice: Path) -> HeldOut:
    """Splits a training set into trained and held-out images; `choice` is auto, none or a file of stretches."""
    if isinstance(source, StreetSet):
        if str(choice) not in ("auto", "none"):
            raise InputError("--hold-out FILE names images of a data folder; the street has none: give auto or none")
        held = source.held_out() if str(choice) == "auto" else ()
        return HeldOut(tuple(sorted(set(range(len(source))) - set(held))), held)
    names = [example.name for example in source.examples]
    if str(choice) == "auto":
        return hold_out(names, camvid_stretches(names))
    return hold_out(names, () if str(choice) == "none" else read_stretches(choice))


def names_of(source: StreetSet | ImageFolderSplit, indices: Sequence[int]) -> list[str]:
    """Returns base names; empty for the street, whose pictures have none."""
    return [] if isinstance(source, StreetSet) else [source.examples[index].name for index in indices]
