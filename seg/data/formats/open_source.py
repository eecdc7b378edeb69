"""Recognises the format of a label file or folder, and opens it."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from steadyseg.core.errors import InputError
from steadyseg.core.system.pictures import has_suffix
from steadyseg.seg.data.formats.cityscapes import LABEL_ENDING, read_cityscapes
from steadyseg.seg.data.formats.coco import read_coco
from steadyseg.seg.data.formats.colour_pngs import PALETTE_NAMES, read_colour_pngs, read_voc
from steadyseg.seg.data.formats.cvat import read_cvat
from steadyseg.seg.data.formats.label_studio import PNG_NAME, read_label_studio, read_label_studio_pngs
from steadyseg.seg.data.formats.labelme import read_labelme
from steadyseg.seg.data.formats.masks import Overlaps
from steadyseg.seg.data.formats.source import SPLIT_NAMES, UNLABELLED, Label, LabelSource, read_json
from steadyseg.seg.data.formats.yolo import read_yolo

KNOWN = (
    "COCO (.json), CVAT for images 1.1 (.xml), Label Studio (.json, or its brush PNGs), LabelMe (.json), YOLO polygons "
    "(data.yaml), Cityscapes (gtFine/), VOC (SegmentationClass/), or PNGs with a palette of colours or ids"
)


def open_labels(source: Path, palette: Path | None = None, overlaps: Overlaps = "smaller") -> LabelSource:
    """Opens labels of any known format; InputError where no format fits, and where no picture is labelled."""
    labels = _open(source, palette, overlaps)
    if not labels.pictures:
        raise InputError(f"{source}: holds no labelled picture ({labels.format}); expected {KNOWN}")
    return labels


def _open(source: Path, palette: Path | None, overlaps: Overlaps) -> LabelSource:
    if source.is_file():
        return _open_files([source], overlaps)
    if not source.is_dir():
        raise InputError(f"{source}: no such file or folder; expected {KNOWN}")
    if (of_yolo := source / "data.yaml").is_file():
        return read_yolo(of_yolo, overlaps)
    palette = palette or next((path for name in PALETTE_NAMES if (path := source / name).is_file()), None)
    if next(source.rglob(f"*{LABEL_ENDING}"), None):
        return read_cityscapes(source)
    for within in ("", "VOC*/", "*/VOC*/"):  # VOCtrainval's archive holds VOCdevkit/VOC2012
        for masks in sorted(source.glob(f"{within}SegmentationClass")):
            return read_voc(masks.parent, palette)
    files = [path for folder in (source, source / "annotations") for path in sorted(folder.glob("[!.]*"))]
    pngs = [path for path in files if path.parent == source and has_suffix(path, (".png",))]
    exports = [path for path in files if has_suffix(path, (".json", ".xml")[: 1 + (path.parent == source)])]
    if brushes := [path for path in pngs if PNG_NAME.fullmatch(path.stem)]:
        listing = next((path for path in exports if path.suffix == ".json"), None)
        return read_label_studio_pngs(brushes, listing, overlaps)
    if palette:
        return read_colour_pngs(source, palette)
    if exports:
        return _open_files(exports, overlaps)
    named = {path.name.lower(): path for path in source.iterdir() if path.is_dir()}
    if splits := [named[split] for split in SPLIT_NAMES if split in named]:
        return join(splits, overlaps)
    if pngs:
        raise InputError(f"{source}: PNGs without a palette; give class names and colours (or ids) by --palette FILE")
    raise InputError(f"{source}: holds no labels; expected {KNOWN}")


def join(folders: list[Path], overlaps: Overlaps) -> LabelSource:
    """Opens folders that are named as splits, each with labels of its own, as one source; a class is its name."""
    parts = [_open(folder, None, overlaps) for folder in folders]
    names = tuple(dict.fromkeys(name for part in parts for name in part.names))
    joined = LabelSource(parts[0].format, names, remarks=[remark for part in parts for remark in part.remarks])
    for folder, part in zip(folders, parts, strict=True):
        ids = np.array([*map(names.index, part.names), *[UNLABELLED] * (256 - len(part.names))])
        for one in part.pictures:
            read = partial(_renumber, one.read, ids)
            joined.pictures.append(one._replace(named=f"{folder.name}/{one.named}", read=read, split=folder.name))
    return joined


def _renumber(read: Callable[..., Label], ids: np.ndarray, *size: Any) -> Label:
    label = read(*size)
    return label._replace(ids=ids[label.ids].astype(np.uint8))


def _open_files(files: list[Path], overlaps: Overlaps) -> LabelSource:
    """Opens one file, or several COCO files, each with a split."""
    path = files[0]
    if path.suffix.lower() == ".xml":
        return read_cvat(path, overlaps)
    if path.suffix.lower() in (".yaml", ".yml"):
        return read_yolo(path, overlaps)
    if path.suffix.lower() != ".json":
        raise InputError(f"{path}: labels of an unknown kind; expected {KNOWN}, unpacked")
    content = read_json(path)
    if isinstance(content, dict) and {"images", "annotations", "categories"} <= content.keys():
        return read_coco(files, overlaps)
    tasks = content if isinstance(content, list) and content and isinstance(content[0], dict) else [{}]
    if {"annotations", "predictions"} & tasks[0].keys():
        return read_label_studio(path, overlaps)
    if isinstance(content, dict) and {"shapes", "imagePath"} <= content.keys():
        return read_labelme(files, overlaps)
    raise InputError(f"{path}: labels of an unknown kind; expected {KNOWN}")
