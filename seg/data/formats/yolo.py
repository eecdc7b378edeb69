"""YOLO's segmentation labels: data.yaml, and for each picture a text file of polygons."""

from functools import partial
from pathlib import Path

import numpy as np
import yaml

from steadyseg.core.errors import InputError
from steadyseg.core.system.pictures import read_upright
from steadyseg.seg.data.formats.masks import Overlaps, Shape, fill_polygon, paint
from steadyseg.seg.data.formats.source import (
    PICTURE_SUFFIXES,
    SPLIT_NAMES,
    Label,
    LabelledPicture,
    LabelSource,
    files_below,
    one_line,
)

EXPECTED = "YOLO's data.yaml with names, and folders of pictures under train, val or test"


def read_yolo(path: Path, overlaps: Overlaps) -> LabelSource:
    """Reads the pictures of all splits. A picture's labels are in labels/ where the picture is in images/."""
    with one_line(path, EXPECTED):
        record = yaml.safe_load(path.read_bytes())
        given = record["names"]
        numbered = given.items() if isinstance(given, dict) else enumerate(given)
        names = dict(sorted((int(number), str(name)) for number, name in numbered))
        source = LabelSource("YOLO", tuple(names.values()))
        read_before = set[Path]()  # a file may name one folder for train and for val: its pictures are train's
        for split in (name for name in SPLIT_NAMES if name in record):
            places = record[split] if isinstance(record[split], list) else [record[split]]
            for place in filter(None, places):
                folder = _folder(path, str(record.get("path") or ""), str(place))
                found = files_below(folder, PICTURE_SUFFIXES) if folder not in read_before else ()
                read_before.add(folder)
                for picture in found:
                    read = partial(_read, picture, _label_of(picture), names, overlaps)
                    source.pictures.append(LabelledPicture(picture.as_posix(), path, read, split))
    return source


def _folder(path: Path, root: str, place: str) -> Path:
    """Returns the folder of a split. Roboflow writes ../train/images and means train/images."""
    tried = [path.parent / root / place, path.parent / place, path.parent / place.removeprefix("../")]
    if (found := next((folder for folder in tried if folder.is_dir()), None)) is None:
        raise InputError(f"{path}: names {place[:80]!r}, which is no folder of pictures here; correct the file")
    return found


def _label_of(picture: Path) -> Path:
    parts = list(picture.with_suffix(".txt").parts)
    at = max((place for place, part in enumerate(parts) if part == "images"), default=None)
    return Path(*parts[:at], "labels", *parts[at + 1 :]) if at is not None else picture.with_suffix(".txt")


def _read(picture: Path, file: Path, names: dict[int, str], overlaps: Overlaps) -> Label:
    """Paints the polygons: lines of a class and corners in shares of the picture's sides."""
    lines = [line.split() for line in file.read_text().splitlines() if line.strip()] if file.is_file() else []
    outlined = [line for line in lines if len(line) >= 7]
    if unknown := {line[0] for line in outlined if int(line[0]) not in names}:
        raise ValueError(f"{file.name} has the class {min(unknown)}, which data.yaml does not name")
    shapes = [Shape(names[int(line[0])], partial(_draw, line[1:])) for line in outlined]
    label = paint(shapes, read_upright(picture).shape[:2], tuple(names.values()), overlaps)
    boxes = f"{len(lines) - len(outlined)} boxes without an outline are left out" if len(lines) > len(outlined) else ""
    return label._replace(remark="; ".join(filter(None, (label.remark, boxes))))


def _draw(corners: list[str], height: int, width: int) -> np.ndarray:
    return fill_polygon(np.array(corners, np.float64).reshape(-1, 2) * (width, height), height, width)
