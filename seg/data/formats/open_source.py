"""Recognises the format of a label file or folder, and opens it."""

from pathlib import Path

from steadyseg.core.errors import InputError
from steadyseg.seg.data.formats.cityscapes import ENDING, read_cityscapes
from steadyseg.seg.data.formats.coco import read_coco
from steadyseg.seg.data.formats.colour_pngs import PALETTE_NAMES, read_colour_pngs, read_voc
from steadyseg.seg.data.formats.cvat import read_cvat
from steadyseg.seg.data.formats.label_studio import PNG_NAME, read_label_studio, read_label_studio_pngs
from steadyseg.seg.data.formats.masks import Overlaps
from steadyseg.seg.data.formats.source import LabelSource, read_json

KNOWN = (
    "COCO (.json), CVAT for images 1.1 (.xml), Label Studio (.json, or its brush PNGs), Cityscapes (gtFine/), VOC "
    "(SegmentationClass/), or colour PNGs with a palette"
)


def open_labels(source: Path, palette: Path | None = None, overlaps: Overlaps = "smaller") -> LabelSource:
    """Opens labels of any known format; InputError with the list of formats where no format fits."""
    if source.is_file():
        return _open_files([source], overlaps)
    if not source.is_dir():
        raise InputError(f"{source}: no such file or folder; expected {KNOWN}")
    palette = palette or next((path for name in PALETTE_NAMES if (path := source / name).is_file()), None)
    if next(source.rglob(f"*{ENDING}"), None):
        return read_cityscapes(source)
    if (source / "SegmentationClass").is_dir():
        return read_voc(source, palette)
    pngs = sorted(source.glob("*.png"))
    exports = sorted([*source.glob("*.json"), *source.glob("annotations/*.json"), *source.glob("*.xml")])
    if brushes := [path for path in pngs if PNG_NAME.fullmatch(path.stem)]:
        listing = next((path for path in exports if path.suffix == ".json"), None)
        return read_label_studio_pngs(brushes, listing, overlaps)
    if palette:
        return read_colour_pngs(source, palette)
    if exports:
        return _open_files(exports, overlaps)
    if pngs:
        raise InputError(f"{source}: PNGs without a palette; give a file of class names and colours by --palette FILE")
    raise InputError(f"{source}: holds no labels; expected {KNOWN}")


def _open_files(files: list[Path], overlaps: Overlaps) -> LabelSource:
    """Opens one file, or several COCO files, each with a split."""
    path = files[0]
    if path.suffix.lower() == ".xml":
        return read_cvat(path, overlaps)
    if path.suffix.lower() != ".json":
        raise InputError(f"{path}: labels of an unknown kind; expected {KNOWN}, unpacked")
    content = read_json(path)
    if isinstance(content, dict) and {"images", "annotations", "categories"} <= content.keys():
        return read_coco(files, overlaps)
    if isinstance(content, list) and content and isinstance(content[0], dict) and "annotations" in content[0]:
        return read_label_studio(path, overlaps)
    raise InputError(f"{path}: labels of an unknown kind; expected {KNOWN}")
