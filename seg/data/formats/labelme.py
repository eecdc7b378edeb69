"""LabelMe's JSON: a file for each picture, beside it."""

import base64
import io
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from steadyseg.seg.data.formats.masks import Outline, Overlaps, Shape, paint, place_part
from steadyseg.seg.data.formats.source import Label, LabelledPicture, LabelSource, claimed_size, one_line, read_json

EXPECTED = "LabelMe's shapes and imagePath"
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
            named, size = str(record["imagePath"]), claimed_size(record.get("imageHeight"), record.get("imageWidth"))
            if left := len(record["shapes"]) - len(kept[path]):
                source.remarks.append(f"{named}: {left} shapes that are no polygon, rectangle or mask are left out")
            read = partial(_read, kept[path], size, names, overlaps)
            source.pictures.append(LabelledPicture(named, path, read, size=size))
    return source


def _kind(shape: dict[str, Any]) -> str:
    return str(shape.get("shape_type") or "polygon")


def _read(found: list[dict[str, Any]], claimed: Any, names: tuple[str, ...], overlaps: Overlaps, *size: Any) -> Label:
    return paint([Shape(one["label"], _drawing_of(one)) for one in found], claimed, names, overlaps, *size)


def _drawing_of(shape: dict[str, Any]) -> Callable[[int, int], np.ndarray]:
    points = np.array(shape["points"], np.float64)
    if _kind(shape) == "rectangle":
        (left, top), (right, bottom) = points.min(0), points.max(0)
        return Outline([[(left, top), (right, top), (right, bottom), (left, bottom)]])
    return Outline([points]) if _kind(shape) == "polygon" else partial(_draw_mask, shape)


def _draw_mask(shape: dict[str, Any], height: int, width: int) -> np.ndarray:
    left, top = np.array(shape["points"], np.float64).min(0)
    part = np.array(Image.open(io.BytesIO(base64.b64decode(shape["mask"]))).convert("L")) > 0
    return place_part(part, int(top), int(left), height, width)
