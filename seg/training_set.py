"""The images of a segmentation training: their source, and the held-out images."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from torch.utils.data import Dataset

from steadyseg.core.classes import CAMVID, ClassList
from steadyseg.core.errors import InputError
from steadyseg.seg.data.held_out import HeldOut, camvid_stretches, hold_out, hold_out_recordings, read_stretches
from steadyseg.seg.data.label_folder import ImageFolderSplit, has_split, open_split, read_names
from steadyseg.seg.data.within import read_choice
from steadyseg.seg.options import SegTrainConfig
from steadyseg.street.drive import StreetSet

STREET_ASPECT = 4 / 3
"""Aspect ratio of the street's pictures, the same as CamVid's."""

KEPT_BYTES = 2**28
"""Most bytes of decoded pictures and labels that stay in memory: all 367 stills of CamVid's train are 254 MB."""


class LabelledImages(Dataset[tuple[np.ndarray, np.ndarray]]):
    """The (image, label) pairs of a training as uint8. The first pairs stay in memory, later pairs are read each
    time."""

    def __init__(self, source: Any, indices: Sequence[int], kept_bytes: float = KEPT_BYTES) -> None:
        self.source, self.indices = source, tuple(indices)
        self.bytes_left, self._kept = kept_bytes, list[tuple[np.ndarray, np.ndarray]]()
        for index in self.indices:
            image, label = source[index]
            if self.bytes_left < image.nbytes + label.nbytes:
                break
            self.bytes_left -= image.nbytes + label.nbytes
            self._kept.append((image, label))

    def __len__(self) -> int:
        return len(self.indices)

    def __getitem__(self, place: int) -> tuple[np.ndarray, np.ndarray]:
        return self._kept[place] if place < len(self._kept) else self.source[self.indices[place]]

    def choice(self, place: int) -> np.ndarray | None:
        """Returns the stored choice inside the label's sets (`seg.within`), if there is one."""
        return read_choice(self.source, self.indices[place]) if isinstance(self.source, ImageFolderSplit) else None

    def __iter__(self) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        return (self[place] for place in range(len(self)))


def open_training_images(
    config: SegTrainConfig, classes: ClassList
) -> tuple[LabelledImages, LabelledImages, list[str], tuple[str, ...]]:
    """Opens the trained and the held-out images; also returns the names held out of train, and remarks.

    By default a data folder that is not CamVid is evaluated on its `val`.
    """
    source = open_training_set(config, classes)
    split = split_held_out(source, config.hold_out)
    if isinstance(source, StreetSet):  # made, not read: a picture takes 0.2 s
        return LabelledImages(source, split.trained, np.inf), LabelledImages(source, split.held_out, np.inf), [], ()
    trained = LabelledImages(source, split.trained)
    if split.held_out or str(config.hold_out) != "auto" or not has_split(config.data, "val"):
        names = [source.examples[index].name for index in split.held_out]
        return trained, LabelledImages(source, split.held_out, trained.bytes_left), names, split.remarks
    val = open_split(config.data, "val", classes)
    remark = (
        f"val's {len(val)} images are evaluated while it trains; to judge a setting chosen by that, take other images"
    )
    return trained, LabelledImages(val, range(len(val)), trained.bytes_left), [], (remark,)


def open_training_set(config: SegTrainConfig, classes: ClassList) -> StreetSet | ImageFolderSplit:
    """Opens the street, or the train split of the folder without the excluded images."""
    if str(config.data) == "street":
        if config.exclude:
            raise InputError("--config exclude names images of a data folder; the street has none")
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
    if str(choice) == "auto" and camvid_stretches(names):
        return hold_out(names, camvid_stretches(names))
    if str(choice) == "auto" and not has_split(source.root, "val"):
        return hold_out_recordings(names)
    return hold_out(names, () if str(choice) in ("auto", "none") else read_stretches(choice))
