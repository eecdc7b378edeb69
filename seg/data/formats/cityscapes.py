"""Cityscapes as it is unpacked: leftImg8bit/SPLIT/CITY/NAME_leftImg8bit.png, and gtFine/ with NAME_gtFine_labelIds.png.

A folder is read in place, or imported as other labels are.
"""

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from steadyseg.core.classes import ClassList, read_table
from steadyseg.core.errors import InputError
from steadyseg.core.system.pictures import look_at
from steadyseg.seg.data.formats.source import UNLABELLED, Label, LabelledPicture, LabelSource, files_below

IMAGES, IMAGE_ENDING = "leftImg8bit", "_leftImg8bit"
LABELS, LABEL_ENDING = "gtFine", "_gtFine_labelIds.png"
CITYSCAPES = read_table(
    "road 128 64 128, sidewalk 244 35 232, building 70 70 70, wall 102 102 156, fence 190 153 153, pole 153 153 153, "
    "traffic_light 250 170 30, traffic_sign 220 220 0, vegetation 107 142 35, terrain 152 251 152, sky 70 130 180, "
    "person 220 20 60, rider 255 0 0, car 0 0 142, truck 0 0 70, bus 0 60 100, train 0 80 100, motorcycle 0 0 230, "
    "bicycle 119 11 32",
    void=UNLABELLED,
)
"""The 19 classes that are evaluated, in their official order and colours (cityscapesScripts, helpers/labels.py)."""
LABEL_IDS = (7, 8, 11, 12, 13, 17, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 31, 32, 33)
"""Their ids in *_labelIds.png."""


def read_cityscapes(root: Path) -> LabelSource:
    """Reads the 19 classes; all other ids are unlabelled."""
    source = LabelSource("Cityscapes", CITYSCAPES.names, CITYSCAPES.colors)
    for label in [path for path in files_below(root, (".png",)) if path.name.endswith(LABEL_ENDING)]:
        named = f"{label.name.removesuffix(LABEL_ENDING)}{IMAGE_ENDING}.png"
        source.pictures.append(LabelledPicture(named, label, partial(_read, label), label.parent.parent.name))
    return source


def _read(path: Path, _: Any = None) -> Label:
    return Label(read_train_ids(path, CITYSCAPES))


def is_cityscapes(root: Path) -> bool:
    """True if the folder holds Cityscapes' fine labels."""
    return (root / LABELS).is_dir()


def pair_cityscapes(root: Path, split: str) -> list[tuple[Path, Path]]:
    """Returns (image, label) of a split, by city and name; InputError for an image without a label."""
    folder = root / IMAGES / split
    pairs = []
    for image in sorted(folder.glob(f"*/*{IMAGE_ENDING}.png")):
        label = root / LABELS / split / image.parent.name / (image.stem.removesuffix(IMAGE_ENDING) + LABEL_ENDING)
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
    table = np.full(256, classes.void_id, np.uint8)
    table[list(LABEL_IDS)] = range(len(LABEL_IDS))
    return table[look_at(path, lambda opened: np.array(opened.convert("L")))]
