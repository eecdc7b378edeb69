"""Label maps as files of label tools: one object for each connected region."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal, NamedTuple
from xml.etree import ElementTree

import numpy as np
import yaml

from steadyseg.seg.data.regions import Region, connected_regions

Tool = Literal["coco", "cvat", "yolo", "label-studio"]
Picture = tuple[str, int, int, list[Any]]
"""(path relative to the file, height, width, its objects as the tool has them)."""


class LabelWriter:
    """The content of a label file, to which pictures are added one by one."""

    def __init__(self, names: tuple[str, ...], tool: Tool = "coco") -> None:
        self._names, self._tool = names, tool
        self._pictures = list[Picture]()

    def add(self, file_name: str, ids: np.ndarray, confidence: np.ndarray) -> None:
        """Adds a picture's label.

        Args:
            file_name: Path of the picture relative to the file, in images/.
            ids: (H, W) uint8 class ids; other values are left out.
            confidence: (H, W) uint8, 255 = 1; the mean of a region becomes its score in COCO and Label Studio.
        """
        objects = list[Any]()
        for region in connected_regions(np.where(ids < len(self._names), ids.astype(np.int64), -1)):
            score = round(float(confidence[region.rows, region.columns][region.mask].mean()) / 255, 4)
            objects.append(FORMATS[self._tool].object_of(region, self._names[region.id], score, *ids.shape))
        self._pictures.append((file_name, *ids.shape, objects))

    def write(self, folder: Path) -> None:
        """Writes the label file. For YOLO, labels/ gets a text file of polygons for each picture."""
        form = FORMATS[self._tool]
        form.write(folder / form.file, self._names, self._pictures)


def _write_coco(path: Path, names: tuple[str, ...], pictures: list[Picture]) -> None:
    """Categories are the class ids + 1, as label tools count from 1."""
    images, marked = list[Any](), list[Any]()
    for number, (name, height, width, objects) in enumerate(pictures, 1):
        images.append({"id": number, "file_name": name, "height": height, "width": width})
        for one in objects:
            marked.append({"id": len(marked) + 1, "image_id": number, **one})
    categories = [{"id": number, "name": name} for number, name in enumerate(names, 1)]
    path.write_text(json.dumps({"images": images, "categories": categories, "annotations": marked}))


def _write_cvat(path: Path, names: tuple[str, ...], pictures: list[Picture]) -> None:
    """`meta` is for Datumaro, which reads no file without it."""
    root = ElementTree.Element("annotations")
    ElementTree.SubElement(root, "version").text = "1.1"
    labels = ElementTree.SubElement(ElementTree.SubElement(ElementTree.SubElement(root, "meta"), "task"), "labels")
    for name in names:
        ElementTree.SubElement(ElementTree.SubElement(labels, "label"), "name").text = name
    for number, (name, height, width, objects) in enumerate(pictures):
        entry = {"id": str(number), "name": Path(name).name, "width": str(width), "height": str(height)}
        ElementTree.SubElement(root, "image", entry).extend(objects)
    ElementTree.ElementTree(root).write(path, "utf-8", xml_declaration=True)


def _write_yolo(path: Path, names: tuple[str, ...], pictures: list[Picture]) -> None:
    path.write_text(yaml.safe_dump({"train": "images", "val": "images", "names": dict(enumerate(names))}))
    folder = path.with_name("labels")
    folder.mkdir()
    for name, _, _, lines in pictures:
        (folder / f"{Path(name).stem}.txt").write_text("\n".join(lines))


def _write_label_studio(path: Path, _: tuple[str, ...], pictures: list[Picture]) -> None:
    content = list[Any]()
    for name, _height, _width, objects in pictures:
        data = {"image": f"/data/local-files/?d={name}"}
        content.append({"data": data, "predictions": [{"model_version": "steadyseg", "result": objects}]})
    path.write_text(json.dumps(content))


def _coco(region: Region, _: str, score: float, height: int, width: int) -> dict[str, Any]:
    mask = np.zeros((height, width), bool)
    mask[region.rows, region.columns] = region.mask
    return {
        "category_id": region.id + 1,
        "bbox": [region.columns.start, region.rows.start, *region.mask.shape[::-1]],
        "area": region.pixels,
        "iscrowd": 1,  # means in COCO: `counts` are run lengths
        "segmentation": {"size": [height, width], "counts": run_lengths(mask.T)},
        "score": score,
    }


def _cvat(region: Region, name: str, *_: float) -> ElementTree.Element:
    rows, columns = region.mask.shape
    box = {"left": region.columns.start, "top": region.rows.start, "width": columns, "height": rows, "z_order": 0}
    runs = ", ".join(map(str, run_lengths(region.mask)))
    marks = {"label": name, "source": "auto", "occluded": "0", "rle": runs}
    return ElementTree.Element("mask", marks | {key: str(value) for key, value in box.items()})


def _yolo(region: Region, _: str, __: float, height: int, width: int) -> str:
    return " ".join([str(region.id), *(f"{part:.6g}" for part in (outline(region) / (width, height)).ravel())])


def _label_studio(region: Region, name: str, score: float, height: int, width: int) -> dict[str, Any]:
    points = (outline(region) * (100 / width, 100 / height)).round(5).tolist()
    place = {"from_name": "label", "to_name": "image", "type": "polygonlabels", "image_rotation": 0}
    size = {"original_width": width, "original_height": height}
    return {**place, **size, "score": score, "value": {"points": points, "polygonlabels": [name], "closed": True}}


class Format(NamedTuple):
    """The label file of a tool."""

    file: str
    object_of: Callable[[Region, str, float, int, int], Any]
    """(region, class name, score, picture's height, width) -> the region as the tool has it."""
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
