"""Label Studio's exports: JSON with brushes and polygons, and brush masks as PNGs."""

import re
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import numpy as np

from steadyseg.core.system.file_names import PICTURE_SUFFIXES
from steadyseg.core.system.pictures import look_at
from steadyseg.seg.data.formats.masks import Outline, Overlaps, Shape, decode_brush, paint
from steadyseg.seg.data.formats.source import LabelledPicture, LabelSource, claimed_size, one_line, read_json

EXPECTED = "Label Studio's JSON export"
PNG_NAME = re.compile(r"task-(\d+)-annotation-\d+-by-[^-]*-[^-]+-(.+)-\d+")
"""Task and label in the file names of the converter's PNGs."""


def read_label_studio(path: Path, overlaps: Overlaps) -> LabelSource:
    """Reads brushes and polygons of each task's first annotation that was not cancelled, or its first prediction."""
    with one_line(path, EXPECTED):
        tasks = [(task, *_outlines(task)) for task in read_json(path)]
        names = tuple(sorted({_class_of(region) for _, outlined, _ in tasks for region in outlined}))
        source = LabelSource("Label Studio", names)
        for task, outlined, remark in tasks:
            named = picture_of(task)
            if remark:
                source.remarks.append(f"{named}: {remark}")
            if outlined:
                size = claimed_size(outlined[0].get("original_height"), outlined[0].get("original_width"))
                shapes = [Shape(_class_of(region), _drawing_of(region["value"])) for region in outlined]
                read = partial(paint, shapes, size, names, overlaps)
                source.pictures.append(LabelledPicture(named, path, read, size=size, is_upload=True))
    return source


def read_label_studio_pngs(files: Sequence[Path], listing: Path | None, overlaps: Overlaps) -> LabelSource:
    """Reads the PNGs task-ID-annotation-...-LABEL-N.png. `listing`, a JSON export, gives the picture of each task.
    Without it the picture has the task's number as its name.
    """
    with one_line(listing or files[0], EXPECTED):
        pictures = {int(task["id"]): picture_of(task) for task in (read_json(listing) if listing else [])}
    masks = defaultdict[int, list[tuple[str, Path]]](list)
    for file in files:
        if match := PNG_NAME.fullmatch(file.stem):
            masks[int(match[1])].append((match[2], file))
    source = LabelSource("Label Studio", tuple(sorted({name for found in masks.values() for name, _ in found})))
    for task, found in sorted(masks.items()):
        height, width = _read_png(found[0][1]).shape
        shapes = [Shape(name, partial(_draw_png, file)) for name, file in found]
        read = partial(paint, shapes, (height, width), source.names, overlaps)
        source.pictures.append(LabelledPicture(pictures.get(task, f"{task}.*"), found[0][1], read, is_upload=True))
    return source


def picture_of(task: Mapping[str, Any]) -> str:
    """Returns the name of a task's picture, from its data or, in a JSON-MIN export, from the item."""
    for value in task.get("data", task).values():
        named = unquote(str(value).partition("?d=")[2] or str(value).partition("?")[0])
        if named.lower().endswith(PICTURE_SUFFIXES):
            return named
    raise ValueError(f"task {task.get('id')} names no picture")


def _outlines(task: Mapping[str, Any]) -> tuple[list[dict[str, Any]], str]:
    """Returns the regions that have an outline and a class, and a remark about all other regions."""
    kept = [one for one in task.get("annotations") or task["predictions"] if not one.get("was_cancelled")]
    regions = [
        region for region in (kept[0]["result"] if kept else []) if "original_width" in region or _class_of(region)
    ]
    outlined = [region for region in regions if _class_of(region)]
    remarks = [
        f"{len(regions) - len(outlined)} regions without an outline or a label are left out" * (regions != outlined),
        "annotated more than once, the first is taken" * (len(kept) > 1),
        "not labelled, left out" * (not outlined),
    ]
    return outlined, "; ".join(filter(None, remarks))


def _class_of(region: Mapping[str, Any]) -> str:
    """Returns the first label of a region that has an outline, else an empty text."""
    value = region.get("value", {})
    labels = value.get("brushlabels") or value.get("polygonlabels") or value.get("labels")
    return str(labels[0]) if labels and ("rle" in value or "points" in value) else ""


def _drawing_of(value: Mapping[str, Any]) -> Callable[[int, int], np.ndarray]:
    """Returns what draws a brush, or a polygon with corners in percent of the picture's sides."""
    return partial(decode_brush, value["rle"]) if "rle" in value else Outline([value["points"]], side=100)


def _draw_png(path: Path, height: int, width: int) -> np.ndarray:
    mask = _read_png(path) > 0
    if mask.shape != (height, width):
        raise ValueError(f"{path.name} is {mask.shape[1]}x{mask.shape[0]}, the task's first mask {width}x{height}")
    return mask


def _read_png(path: Path) -> np.ndarray:
    return look_at(path, lambda opened: np.array(opened.convert("L")))
