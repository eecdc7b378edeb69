"""COCO's instance annotations: polygons and run lengths in one JSON file, or in one for each split."""

from collections import defaultdict
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from steadyseg.seg.data.formats.masks import Overlaps, Shape, decode_coco_rle, fill_polygon, painter
from steadyseg.seg.data.formats.source import LabelledPicture, LabelSource, one_line, read_json

EXPECTED = "COCO's images, categories and annotations"
SPLITS = ("train", "val", "test")


def read_coco(files: Sequence[Path], overlaps: Overlaps) -> LabelSource:
    """Reads the files as one source. If there are several, a file named like a split (instances_train.json) gives that
    split. Only categories that have an object are classes.
    """
    contents = {path: read_json(path) for path in files}
    used: dict[str, None] = {}
    for path, content in contents.items():
        with one_line(path, EXPECTED):
            occurring = {annotation["category_id"] for annotation in content["annotations"]}
            used |= dict.fromkeys(name for number, name in sorted(_names(content).items()) if number in occurring)
    source = LabelSource("COCO", tuple(used))
    for path, content in contents.items():
        split = next((name for name in SPLITS if name in path.stem.lower()), "") if len(files) > 1 else ""
        with one_line(path, EXPECTED):
            _add_pictures(source, path, content, overlaps, split)
    return source


def _names(content: Any) -> dict[Any, str]:
    return {category["id"]: str(category["name"]) for category in content["categories"]}


def _add_pictures(source: LabelSource, path: Path, content: Any, overlaps: Overlaps, split: str) -> None:
    names, shapes, boxes = _names(content), defaultdict[Any, list[Shape]](list), defaultdict[Any, int](int)
    for annotation in content["annotations"]:
        if annotation.get("segmentation"):
            shape = Shape(names[annotation["category_id"]], partial(draw_segmentation, annotation["segmentation"]))
            shapes[annotation["image_id"]].append(shape)
        else:
            boxes[annotation["image_id"]] += 1
    for image in content["images"]:
        number, named = image["id"], str(image["file_name"])
        if boxes[number]:
            source.remarks.append(f"{named}: {boxes[number]} boxes without an outline are left out")
        read = painter(shapes[number], (int(image["height"]), int(image["width"])), source.names, overlaps)
        source.pictures.append(LabelledPicture(named, path, read, split))


def draw_segmentation(segmentation: Any, height: int, width: int) -> np.ndarray:
    """Draws the polygons [[x, y, x, y, ...], ...] or the run lengths {"size", "counts"} of an annotation."""
    if isinstance(segmentation, dict):
        if list(segmentation["size"]) != [height, width]:
            raise ValueError(f"run lengths of size {segmentation['size']} in a picture of {[height, width]}")
        return decode_coco_rle(segmentation["counts"], height, width)
    mask = np.zeros((height, width), bool)
    for corners in segmentation:
        mask |= fill_polygon(corners, height, width)
    return mask
