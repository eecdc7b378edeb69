"""The flags of `steadyseg data`."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from tyro.conf import Positional, arg

from steadyseg.seg.data.formats.masks import Overlaps


@dataclass(frozen=True)
class FetchJob:
    """The folder for a data set."""

    output: Annotated[Path | None, arg(aliases=["-o"])] = None
    """Folder for the data set; by default CamVid, cifar10 or cifar100 in the current folder."""


@dataclass(frozen=True)
class ImportJob:
    """Labels of your own, and the data folder to make of them."""

    source: Positional[Annotated[Path, arg(metavar="SOURCE")]]
    """COCO (.json), CVAT for images or video 1.1 (.xml), Label Studio (.json, or a folder of its brush PNGs), LabelMe
    (.json) or YOLO polygons (data.yaml). Or a folder: of these, in the layout of Cityscapes or VOC, or colour PNGs."""
    output: Annotated[Path, arg(aliases=["-o"])]
    """Folder to write: train/, trainannot/ and so on, classes.json, notes.txt and contact-sheet.jpg."""
    images: Path | None = None
    """Folder of the pictures; by default the folder of the labels and all folders below it."""
    palette: Path | None = None
    """Class names and colours of colour PNGs: lines of `name r g b` or JSON; labelmap.txt, label_colors.txt,
    class_dict.csv or classes.json in the folder by default."""
    background: str | None = None
    """Class name for unlabelled pixels; by default they are void, which is neither learned nor measured."""
    overlaps: Overlaps = "smaller"
    """Class of pixels that two objects share: the smaller object's class, the later object's class, or void. CVAT's
    z_order has priority."""
    val: float = 0.2
    """Share of the frames for val, in whole recordings: frames of one recording have names that differ only in the last
    number."""
    test: float = 0.0
    """Share of the frames for test."""
    skip_bad: bool = False
    """Leave out pictures that are missing or do not fit their labels, instead of stopping."""
    overwrite: bool = False
    """Replace a folder that exists."""
