"""The flags of `steadyseg data import`, `data export` and `suspects`."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from tyro.conf import Positional, arg

from steadyseg.seg.data.formats.masks import Overlaps
from steadyseg.seg.data.label_writer import Tool


@dataclass(frozen=True)
class ImportJob:
    """The labels to import, and the data folder to write."""

    source: Positional[Annotated[Path, arg(metavar="SOURCE")]]
    """COCO (.json), CVAT for images or video 1.1 (.xml), Label Studio (.json, or a folder of its brush PNGs), LabelMe
    (.json) or YOLO polygons (data.yaml). Or a folder: of these, in the layout of Cityscapes or VOC, or colour PNGs."""
    output: Annotated[Path, arg(aliases=["-o"])]
    """Folder to write: train/, trainannot/ and so on, classes.json, notes.txt and contact-sheet.jpg."""
    images: Path | None = None
    """Folder of the pictures. The default is the folder of the labels; folders below it are searched too."""
    palette: Path | None = None
    """Class names and colours of colour PNGs: lines of `name r g b` or JSON; labelmap.txt, label_colors.txt,
    class_dict.csv or classes.json in the folder by default."""
    background: str | None = None
    """Class name for unlabelled pixels; by default they are void, which is neither learned nor measured."""
    allows: Path | None = None
    """JSON file {"road": ["Road"], "not road": ["Building", "Tree", ...]}: for each class of coarse labels the
    network's classes of which any is right. The data folder then has the network's classes."""
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


@dataclass(frozen=True)
class WithinJob:
    """A data folder with coarse labels, and the network that says which class of a set a pixel is."""

    data: Positional[Annotated[Path, arg(metavar="DATA")]]
    """Data folder whose classes.json has `allows`; DATA/trainwithin/ is written."""
    model: str = "road-realtime"
    """Pretrained name or .safetensors file of a network with these classes."""


@dataclass(frozen=True)
class RoadsJob:
    """Other people's roads, and the data folders to write for `train seg --preset road-mobile`."""

    source: Positional[Annotated[Path, arg(metavar="SOURCE")]]
    """Folder with idd-lite/ and labelmefacade/, each with train/ and val/ of images/ and labels/."""
    output: Annotated[Path, arg(aliases=["-o"])] = Path("roads")
    """Folder to write, with a data folder for each."""
    model: str = "road-realtime"
    """Network that chooses inside the sets, as in `steadyseg data within`."""
    overwrite: bool = False
    """Replace a folder that exists."""


@dataclass(frozen=True)
class LabelExportJob:
    """The data folder or masks to export, and the folder to write."""

    source: Positional[Annotated[Path, arg(metavar="SOURCE")]]
    """Data folder with SPLIT/ and SPLITannot/; or the folder of `steadyseg video --masks`."""
    output: Annotated[Path, arg(aliases=["-o"])]
    """Folder to write: images/, with a folder for each split of the data, and the labels."""
    images: str | None = None
    """The source that was segmented into the masks: video, image or image folder, or `street[:SEED[:FRAMES]]`."""
    labels: Tool = "coco"
    """Label tool whose format the labels have. Pixels of void are in no object of any format."""
    overwrite: bool = False
    """Replace a folder that exists."""


@dataclass(frozen=True)
class SuspectsJob:
    """Labelled pictures, and the labels among them that are probably wrong."""

    data: Positional[Annotated[Path, arg(metavar="DATA")]]
    """Folder with SPLIT/ and SPLITannot/."""
    model: str
    """Pretrained name, .safetensors file, or .onnx file of `wrap` or `export --stateful`, with these classes. Best is a
    network not trained on these pictures, as networks learn wrong labels too."""
    output: Annotated[Path, arg(aliases=["-o"])]
    """Folder to write: suspects.csv and contact-sheet.jpg."""
    split: Literal["train", "val", "test", "held-out"] = "train"
    """Split of the data; held-out: the images of train that the training held out, by the network's record."""
    count: Annotated[int, arg(aliases=["-n"])] = 100
    """Number of suspect regions to list, the most suspect first."""
    overwrite: bool = False
    """Replace a folder that exists."""
