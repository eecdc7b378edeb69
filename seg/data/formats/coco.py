"""COCO's instance annotations: polygons and run lengths in one JSON file, or in a file for each split."""

import re
from collections import defaultdict
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from steadyseg.core.errors import InputError, shorten
from steadyseg.seg.data.formats.masks import Outline, Overlaps, Shape, decode_coco_rle, paint
from steadyseg.seg.data.formats.source import SPLITS, LabelledPicture, LabelSource, claimed_size, one_line, read_json

EXPECTED = "COCO's images, categories and annotations"
NUMBER = re.compile(r"0|[1-9][0-9]{0,18}")
"""A text that is an id as a number; 007 and 7 are two ids."""


class Content(NamedTuple):
    """A COCO file whose ids are unique, and whose annotations have an image and a category."""

    categories: dict[Any, Any]
    images: dict[Any, Any]
    objects: list[tuple[Any, Any, Any]]
    """(image's id, category's id, segmentation)."""

    def name_of(self, category: Any) -> str:
        return str(self.categories[category]["name"])


def read_coco(files: Sequence[Path], overlaps: Overlaps) -> LabelSource:
    """Reads the files as one source. If there are several, a file named like a split (instances_train.json) gives that
    split. Only categories that have an object are classes.
    """
    contents: dict[Path, Content] = {}
    used: dict[str, None] = {}
    for path in files:
        with one_line(path, EXPECTED):
            contents[path] = content = _read(path)
            occurring = {category for _, category, _ in content.objects}
            ordered = sorted(occurring, key=lambda number: (isinstance(number, str), number))
            used |= dict.fromkeys(map(content.name_of, ordered))
    source = LabelSource("COCO", tuple(used))
    for path, content in contents.items():
        split = next((name for name in SPLITS if name in path.stem.lower()), "") if len(files) > 1 else ""
        with one_line(path, EXPECTED):
            _add_pictures(source, path, content, overlaps, split)
    return source


def _read(path: Path) -> Content:
    """Reads a file; InputError for an id that two entries share, and for an id that no entry has."""
    content, tables = read_json(path), dict[str, dict[Any, Any]]()
    for kind in ("categories", "images"):
        table = tables[kind] = dict[Any, Any]()
        for entry in content[kind]:
            if (number := _id(entry["id"])) in table:
                raise InputError(f"{path}: two {kind} have the id {shorten(number)}; give each an id of its own")
            table[number] = entry

    def look_up(annotation: Any, key: str, kind: str) -> Any:
        if (number := _id(annotation[key])) not in tables[kind]:
            raise InputError(
                f"{path}: an annotation has the {key} {shorten(number)}, but none of the {kind} has this id; "
                "correct the file, or delete the annotation"
            )
        return number

    if any("segments_info" in one for one in content["annotations"]):
        raise InputError(f"{path}: panoptic annotations, whose objects are in PNGs; give the instance annotations")
    objects = [
        (look_up(one, "image_id", "images"), look_up(one, "category_id", "categories"), one.get("segmentation"))
        for one in content["annotations"]
    ]
    return Content(tables["categories"], tables["images"], objects)


def _id(value: Any) -> Any:
    """Returns an id; a number's text becomes the number, as some tools write image_id "1" for the image 1."""
    return int(value) if isinstance(value, str) and NUMBER.fullmatch(value) else value


def _add_pictures(source: LabelSource, path: Path, content: Content, overlaps: Overlaps, split: str) -> None:
    shapes, boxes = defaultdict[Any, list[Shape]](list), defaultdict[Any, int](int)
    for number, category, segmentation in content.objects:
        if segmentation:
            shapes[number].append(Shape(content.name_of(category), drawing_of(segmentation)))
        else:
            boxes[number] += 1
    for number, image in content.images.items():
        named = str(image["file_name"])
        if boxes[number]:
            source.remarks.append(f"{named}: {boxes[number]} boxes without an outline are left out")
        size = claimed_size(image.get("height"), image.get("width"))
        read = partial(paint, shapes[number], size, source.names, overlaps)
        source.pictures.append(LabelledPicture(named, path, read, split, size))


def drawing_of(segmentation: Any) -> Callable[[int, int], np.ndarray]:
    """Returns what draws polygons [[x, y, ...], ...], one polygon [x, y, ...], or run lengths {"size", "counts"}."""
    if isinstance(segmentation, list):
        return Outline(segmentation if isinstance(segmentation[0], list) else [segmentation])
    return partial(_draw_runs, segmentation)


def _draw_runs(segmentation: Any, height: int, width: int) -> np.ndarray:
    if not isinstance(segmentation, dict):
        raise ValueError(f"a segmentation is a list of polygons or run lengths, got {shorten(segmentation)}")
    if list(segmentation["size"]) != [height, width]:
        raise ValueError(f"run lengths of size {segmentation['size']} in a picture of {[height, width]}")
    return decode_coco_rle(segmentation["counts"], height, width)
