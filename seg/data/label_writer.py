"""Label maps as files of label tools: one object for each connected region."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal, NamedTuple
from urllib.parse import quote
from xml.etree import ElementTree

import numpy as np
import yaml

from steadyseg.core.errors import InputError, printable
from steadyseg.seg.data.regions import Region, connected_regions

Tool = Literal["coco", "cvat", "yolo", "label-studio"]


class Picture(NamedTuple):
    """A picture: path relative to the label file, split or an empty text, size, objects as the tool has them."""

    name: str
    split: str
    height: int
    width: int
    objects: list[Any]


class LabelWriter:
    """The content of a label file, to which pictures are added one by one."""

    def __init__(self, names: tuple[str, ...], tool: Tool = "coco") -> None:
        self._names, self._tool = names, tool
        self._pictures = list[Picture]()

    def add(self, file_name: str, ids: np.ndarray, split: str = "") -> None:
        """Adds a picture's label. InputError for a name that label files cannot hold.

        Args:
            file_name: Path of the picture relative to the file, in images/.
            ids: (H, W) uint8 class ids; other values are left out.
            split: train, val or test; Label Studio's file has no splits.
        """
        if not file_name.isprintable():
            raise InputError(f"{printable(file_name)}: label files cannot hold this name; rename the picture")
        regions = connected_regions(np.where(ids < len(self._names), ids.astype(np.int64), -1))
        object_of = FORMATS[self._tool].object_of
        objects = [object_of(region, self._names[region.id], *ids.shape) for region in regions]
        self._pictures.append(Picture(file_name, split, ids.shape[0], ids.shape[1], objects))

    def write(self, folder: Path) -> None:
        """Writes the label file; InputError without any object. YOLO's labels/ has a text file for each picture, and
        COCO a file for each split."""
        if not any(picture.objects for picture in self._pictures):
            raise InputError(f"none of the {len(self._pictures)} pictures has a pixel of a class: no label to write")
        form = FORMATS[self._tool]
        form.write(folder / form.file, self._names, self._pictures)


def _write_coco(path: Path, names: tuple[str, ...], pictures: list[Picture]) -> None:
    """Categories are the class ids + 1, as label tools count from 1."""
    categories = [{"id": number, "name": name} for number, name in enumerate(names, 1)]
    for split in {picture.split for picture in pictures}:
        images, marked = list[Any](), list[Any]()
        for number, one in enumerate((one for one in pictures if one.split == split), 1):
            images.append({"id": number, "file_name": one.name, "height": one.height, "width": one.width})
            marked += [{"id": len(marked) + place, "image_id": number, **of} for place, of in enumerate(one.objects, 1)]
        content = {"images": images, "categories": categories, "annotations": marked}
        path.with_stem("_".join(filter(None, (path.stem, split)))).write_text(json.dumps(content))


def _write_cvat(path: Path, names: tuple[str, ...], pictures: list[Picture]) -> None:
    """`meta` is for Datumaro, which reads no file without it."""
    root = ElementTree.Element("annotations")
    ElementTree.SubElement(root, "version").text = "1.1"
    labels = ElementTree.SubElement(ElementTree.SubElement(ElementTree.SubElement(root, "meta"), "task"), "labels")
    for name in names:
        ElementTree.SubElement(ElementTree.SubElement(labels, "label"), "name").text = name
    for number, one in enumerate(pictures):
        entry = {"id": number, "name": one.name.removeprefix("images/"), "width": one.width, "height": one.height}
        entry |= {"subset": one.split} if one.split else {}
        ElementTree.SubElement(root, "image", {key: str(value) for key, value in entry.items()}).extend(one.objects)
    ElementTree.ElementTree(root).write(path, "utf-8", xml_declaration=True)


def _write_yolo(path: Path, names: tuple[str, ...], pictures: list[Picture]) -> None:
    """`train` and `val` are always there, because ultralytics requires both."""
    folders = {one.split or "train": Path(one.name).parent.as_posix() for one in pictures}
    record = dict.fromkeys(("train", "val"), next(iter(folders.values()))) | folders
    path.write_text(yaml.safe_dump(record | {"names": dict(enumerate(names))}))
    for one in pictures:
        file = path.with_name("labels") / Path(one.name).relative_to("images").with_suffix(".txt")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("\n".join(one.objects))


def _write_label_studio(path: Path, _: tuple[str, ...], pictures: list[Picture]) -> None:
    content = list[Any]()
    for one in pictures:
        data = {"image": f"/data/local-files/?d={quote(one.name)}"}
        content.append({"data": data, "predictions": [{"model_version": "steadyseg", "result": one.objects}]})
    path.write_text(json.dumps(content))


def _coco(region: Region, _: str, height: int, width: int) -> dict[str, Any]:
    mask = np.zeros((height, width), bool)
    mask[region.rows, region.columns] = region.mask
    return {
        "category_id": region.id + 1,
        "bbox": [region.columns.start, region.rows.start, *region.mask.shape[::-1]],
        "area": region.pixels,
        "iscrowd": 0,  # trainings pass over crowds
        "segmentation": {"size": [height, width], "counts": run_lengths(mask.T)},
    }


def _cvat(region: Region, name: str, *_: Any) -> ElementTree.Element:
    rows, columns = region.mask.shape
    box = {"left": region.columns.start, "top": region.rows.start, "width": columns, "height": rows, "z_order": 0}
    runs = ", ".join(map(str, run_lengths(region.mask)))
    marks = {"label": name, "source": "auto", "occluded": "0", "rle": runs}
    return ElementTree.Element("mask", marks | {key: str(value) for key, value in box.items()})


def _yolo(region: Region, _: str, height: int, width: int) -> str:
    return " ".join([str(region.id), *(f"{part:.6g}" for part in (outline(region) / (width, height)).ravel())])


def _label_studio(region: Region, name: str, height: int, width: int) -> dict[str, Any]:
    points = (outline(region) * (100 / width, 100 / height)).round(5).tolist()
    place = {"from_name": "label", "to_name": "image", "type": "polygonlabels", "image_rotation": 0}
    size = {"original_width": width, "original_height": height}
    return {**place, **size, "value": {"points": points, "polygonlabels": [name], "closed": True}}


class Format(NamedTuple):
    """The label file of a tool."""

    file: str
    object_of: Callable[[Region, str, int, int], Any]
    """(region, class name, picture's height, width) -> the region as the tool has it."""
    write: Callable[[Path, tuple[str, ...], list[Picture]], None]


FORMATS: dict[Tool, Format] = {
    "coco": Format("coco.json", _coco, _write_coco),
    "cvat": Format("cvat.xml", _cvat, _write_cvat),
    "yolo": Format("data.yaml", _yolo, _write_yolo),
    "label-studio": Format("tasks.json", _label_studio, _write_label_studio),
}


def outline(region: Region) -> np.ndarray:
    """Returns (N, 2) corners x, y along the edges of the pixels; a line there and back joins each hole."""
    import cv2

    doubled = np.pad(region.mask.repeat(2, 0).repeat(2, 1), 1).astype(np.uint8)  # an edge lies between two pixels of it
    contours, hierarchy = cv2.findContours(doubled, cv2.RETR_CCOMP, cv2.CHAIN_APPROX_SIMPLE)
    parts = [contours[place].reshape(-1, 2) // 2 for place in np.argsort(hierarchy[0, :, 3], kind="stable")]
    joined = np.concatenate([points for part in parts for points in (part, part[:1], parts[0][:1])])
    kept = np.r_[True, (joined[1:] != joined[:-1]).any(1)]
    return joined[kept] + (region.columns.start, region.rows.start)


def run_lengths(mask: np.ndarray) -> list[int]:
    """Returns the alternating run lengths of a mask along its rows, beginning with False."""
    flat = mask.ravel()
    ends = np.flatnonzero(flat[1:] != flat[:-1]) + 1
    lengths: list[int] = np.diff([0, *ends, flat.size]).tolist()
    return [0, *lengths] if flat[0] else lengths
