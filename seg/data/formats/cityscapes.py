"""Cityscapes' fine labels: gtFine/SPLIT/CITY/NAME_gtFine_labelIds.png beside leftImg8bit/."""

from functools import partial
from pathlib import Path

import numpy as np

from steadyseg.core.classes import read_table
from steadyseg.core.system.pictures import look_at
from steadyseg.seg.data.formats.source import UNLABELLED, Label, LabelledPicture, LabelSource, files_below

ENDING = "_gtFine_labelIds.png"
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
    for label in [path for path in files_below(root, (".png",)) if path.name.endswith(ENDING)]:
        named = label.name.removesuffix(ENDING) + "_leftImg8bit.png"
        source.pictures.append(LabelledPicture(named, label, partial(_read, label), label.parent.parent.name))
    return source


def read_label_ids(path: Path) -> np.ndarray:
    """Reads a *_labelIds.png as (H, W) uint8: 0..18 in the order of the 19 classes, UNLABELLED elsewhere."""
    table = np.full(256, UNLABELLED, np.uint8)
    table[list(LABEL_IDS)] = range(len(LABEL_IDS))
    return table[look_at(path, lambda opened: np.array(opened.convert("L")))]


def _read(path: Path) -> Label:
    return Label(read_label_ids(path))
