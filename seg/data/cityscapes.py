"""Cityscapes as it is unpacked: leftImg8bit/SPLIT/CITY/NAME_leftImg8bit.png, and gtFine/ with NAME_gtFine_labelIds.png.

Nothing is copied or converted; a picture is read when a training or an evaluation comes to it.
"""

from pathlib import Path

import numpy as np

from steadyseg.core.classes import ClassList
from steadyseg.core.errors import InputError
from steadyseg.seg.data.formats.cityscapes import ENDING, read_label_ids

IMAGES, LABELS, IMAGE_ENDING = "leftImg8bit", "gtFine", "_leftImg8bit"


def is_cityscapes(root: Path) -> bool:
    """True if the folder holds Cityscapes' fine labels."""
    return (root / LABELS).is_dir()


def pair_cityscapes(root: Path, split: str) -> list[tuple[Path, Path]]:
    """Returns (image, label) of a split, by city and name; InputError for an image without a label."""
    folder = root / IMAGES / split
    pairs = []
    for image in sorted(folder.glob(f"*/*{IMAGE_ENDING}.png")):
        label = root / LABELS / split / image.parent.name / (image.stem.removesuffix(IMAGE_ENDING) + ENDING)
        if not label.is_file():
            raise InputError(f"{image}: no label {label}; every image of {IMAGES}/{split} needs one")
        pairs.append((image, label))
    if not pairs:
        raise InputError(
            f"{folder}: holds no CITY/NAME{IMAGE_ENDING}.png; unpack {IMAGES}_trainvaltest.zip beside {LABELS}/"
        )
    return pairs


def read_train_ids(path: Path, classes: ClassList) -> np.ndarray:
    """Reads a *_labelIds.png as (H, W) uint8 ids of the 19 classes, void elsewhere."""
    ids = read_label_ids(path)
    return np.where(ids < len(classes), ids, np.uint8(classes.void_id))
