"""LabelMe's JSON: a file for each picture, beside it."""

import base64
import io
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from steadyseg.seg.data.formats.masks import Overlaps, Shape, fill_polygon, paint
from steadyseg.seg.data.formats.source import LabelledPicture, LabelSource, one_line, read_json

EXPECTED = "LabelMe's shapes, imagePath, imageHeight and imageWidth"
KINDS = ("polygon", "rectangle", "mask")
"""Kinds of shapes that have an area here."""


def read_labelme(files: Sequence[Path], overlaps: Overlaps) -> LabelSource:
    """Reads the files as one source; the classes are those that occur, in the order of their names."""
    contents: dict[Path, dict[str, Any]] = {}
    for path in files:
        with one_line(path, EXPECTED):
            contents[path] = record = read_json(path)
            record["shapes"] = [shape | {"label": str(shape["label"])} for shape in record["shapes"]]
    kept = {path: [one for one in record["shapes"] if _kind(one) in KINDS] for path, record in contents.items()}
    names = tuple(sorted({shape["label"] for shapes in kept.values() for shape in shapes}))
    source = LabelSource("LabelMe", names)
    for path, record in contents.items():
        with one_line(path, EXPECTED):
            named, size = str(record["imagePath"]), (record["imageHeight"], record["imageWidth"])
            if left := len(record["shapes"]) - len(kept[path]):
                source.remarks.append(f"{named}: {left} shapes that are no polygon, rectangle or mask are left out")
            shapes = [Shape(shape["label"], partial(_draw, shape)) for shape in kept[path]]
            read = partial(paint, shapes, size, names, overlaps)
            source.pictures.append(LabelledPicture(named, path, read, size=size))
    return source


def _kind(shape: dict[str, Any]) -> str:
    return str(shape.get("shape_type") or "polygon")


def _draw(shape: dict[str, Any], height: int, width: int) -> np.ndarray:
    points = np.array(shape["points"], np.float64)
    if _kind(shape) == "polygon":
        return fill_polygon(points, height, width)
    (left, top), (right, bottom) = points.min(0), points.max(0)
    if _kind(shape) == "rectangle":
        return fill_polygon([(left, top), (right, top), (right, bottom), (left, bottom)], height, width)
    part = np.array(Image.open(io.BytesIO(base64.b64decode(shape["mask"]))).convert("L")) > 0
    row, column = int(top), int(left)
    if min(row, column) < 0 or row + part.shape[0] > height or column + part.shape[1] > width:
        raise ValueError(f"a mask at {column},{row} of {part.shape[1]}x{part.shape[0]} leaves the picture")
    mask = np.zeros((height, width), bool)
    mask[row : row + part.shape[0], column : column + part.shape[1]] = part
    return mask
