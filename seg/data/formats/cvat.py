"""CVAT for images 1.1 and for video 1.1: one XML file with polygons and masks."""

import re
from functools import partial
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np

from steadyseg.core.errors import InputError
from steadyseg.core.system.files import read_small
from steadyseg.seg.data.formats.masks import Outline, Overlaps, Shape, fill_runs, paint, place_part
from steadyseg.seg.data.formats.source import (
    MAX_LABEL_BYTES,
    Color,
    Label,
    LabelledPicture,
    LabelSource,
    claimed_size,
    one_line,
)

NEEDED = {"polygon": "points", "mask": "rle"}
"""Objects that have an outline, and the attribute that holds it."""


def read_cvat(path: Path, overlaps: Overlaps) -> LabelSource:
    """Reads the classes that occur, in CVAT's colours; objects of a higher z_order hide those below."""
    with one_line(path, "CVAT for images 1.1 or for video 1.1"):
        root = ElementTree.fromstring(read_small(path, MAX_LABEL_BYTES))
        images = [*root.iter("image"), *_frames(root, path)]
        drawn = {shape.get("label", "") for kind in NEEDED for shape in root.iter(kind)} - {""}
        colors = _label_colors(root)
        names = tuple(name for name in dict.fromkeys([*colors, *sorted(drawn)]) if name in drawn)
        known = tuple(color for name in names if (color := colors.get(name)))
        source = LabelSource("CVAT", names, known if len(known) == len(names) else ())
        for image in images:
            named, size = image.attrib["name"], claimed_size(image.get("height"), image.get("width"))
            if others := [shape.tag for shape in image if shape.tag not in (*NEEDED, "tag")]:
                kinds = ", ".join(sorted(set(others)))
                source.remarks.append(f"{named}: {len(others)} objects that have no outline are left out ({kinds})")
            read = partial(_read, image, size, names, overlaps)
            source.pictures.append(LabelledPicture(named, path, read, image.get("subset", ""), size))
    return source


def _frames(root: ElementTree.Element, path: Path) -> list[ElementTree.Element]:
    """Returns an <image> for each frame that shows a track. Its name is CVAT's name of that frame, frame_000012."""
    size = {key: root.findtext(f"meta//original_size/{key}", "") for key in ("height", "width")}
    frames, tracks = dict[int, ElementTree.Element](), root.findall("track")
    if len({track.get("task_id") for track in tracks}) > 1:
        raise InputError(f"{path}: the tracks of several videos; export each task by itself")
    for label, shape in [(track.attrib["label"], shape) for track in tracks for shape in track]:
        shape.set("label", label)
        if shape.get("outside") != "1":
            number = int(shape.attrib["frame"])
            frames.setdefault(number, ElementTree.Element("image", size, name=f"frame_{number:06d}.*")).append(shape)
    return [frames[number] for number in sorted(frames)]


def _read(image: ElementTree.Element, claimed: Any, names: tuple[str, ...], overlaps: Overlaps, *size: Any) -> Label:
    return paint([_shape(shape) for shape in image if shape.tag in NEEDED], claimed, names, overlaps, *size)


def _label_colors(root: ElementTree.Element) -> dict[str, Color | None]:
    """Returns the labels of the task in their order; None for a label without a colour."""
    found: dict[str, Color | None] = {}
    for label in root.iterfind("meta//label"):
        color = re.fullmatch(r"#(..)(..)(..)", label.findtext("color") or "")
        red, green, blue = (int(part, 16) for part in color.groups()) if color else (0, 0, 0)
        found[label.findtext("name") or ""] = (red, green, blue) if color else None
    return found


def _shape(element: ElementTree.Element) -> Shape:
    if missing := [key for key in ("label", NEEDED[element.tag]) if key not in element.attrib]:
        raise ValueError(f"a {element.tag} without {missing[0]}")
    name, layer = element.attrib["label"], int(element.get("z_order", 0))
    if element.tag == "polygon":
        corners = [[float(value) for value in point.split(",")] for point in element.attrib["points"].split(";")]
        return Shape(name, Outline([corners]), layer)
    lengths = [int(length) for length in element.attrib["rle"].split(",")]
    box = tuple(int(float(element.attrib[key])) for key in ("top", "left", "height", "width"))
    return Shape(name, partial(_draw_mask, lengths, box), layer)


def _draw_mask(lengths: list[int], box: tuple[int, ...], height: int, width: int) -> np.ndarray:
    """Draws run lengths along the rows of a box (top, left, height, width)."""
    top, left, *shape = box
    if min(shape) < 0 or shape[0] > height or shape[1] > width:
        raise ValueError(f"a mask of {shape[1]}x{shape[0]} leaves the picture of {width}x{height}")
    return place_part(fill_runs(lengths, shape[0] * shape[1]).reshape(shape), top, left, height, width)
