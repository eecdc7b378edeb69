"""YOLO's segmentation labels: data.yaml, and for each picture a text file of polygons."""

from collections.abc import Callable
from functools import partial
from pathlib import Path, PureWindowsPath

import yaml

from steadyseg.core.errors import InputError
from steadyseg.core.system.file_names import PICTURE_SUFFIXES, UNREAD_SUFFIXES, Names, listed_names, spelled
from steadyseg.core.system.files import read_small
from steadyseg.seg.data.formats.masks import Outline, Overlaps, Shape, paint
from steadyseg.seg.data.formats.source import SPLIT_NAMES, Label, LabelledPicture, LabelSource, files_below, one_line

EXPECTED = "YOLO's data.yaml with names, and folders or lists of pictures under train, val or test"
Listings = dict[Path, Names]


def read_yolo(path: Path, overlaps: Overlaps) -> LabelSource:
    """Reads the pictures of all splits. A picture's labels are in labels/ where the picture is in images/.

    A split whose pictures have no label file is left out with a remark; InputError where no split has any.
    """
    with one_line(path, EXPECTED):
        record = yaml.safe_load(read_small(path))
        given = record["names"]
        numbered = given.items() if isinstance(given, dict) else enumerate(given)
        names = dict(sorted((int(number), str(name)) for number, name in numbered))
        source, listings, used = LabelSource("YOLO", tuple(names.values())), Listings(), set[Path]()
        read_before = set[Path]()  # a file may name one folder for train and for val: its pictures are train's
        for split in (name for name in SPLIT_NAMES if name in record):
            places = record[split] if isinstance(record[split], list) else [record[split]]
            for place in filter(None, places):
                found = _place(path, str(record.get("path") or ""), str(place), listings)
                if found not in read_before:
                    read_before.add(found)
                    used |= _add_pictures(source, path, found, split, listings, partial(_read, names, overlaps))
        if not source.pictures and source.remarks:
            raise InputError(f"{path}: {'; '.join(source.remarks)}")
        folders = sorted({file.parent for file in used if "labels" in map(str.lower, file.parts)})
        if lonely := [file for folder in folders for file in sorted(folder.glob("*.txt")) if file not in used]:
            source.remarks.append(f"{len(lonely)} label files have no picture here, such as {lonely[0]}")
    return source


def _place(path: Path, root: str, place: str, listings: Listings) -> Path:
    """Returns the folder or list of a split. Roboflow writes ../train/images and means train/images."""
    way, base = _posix(place), path.parent
    tried = [base / _posix(root) / way, base / way, *_ends(base, way, only_elsewhere=True)]
    for one in (spelled(one, listings) for one in tried):
        if one.is_dir() or (one.is_file() and one.suffix.lower() == ".txt"):
            return one
    raise InputError(f"{path}: names {place[:80]!r}, which is no folder of pictures here, nor a list; correct the file")


def _posix(place: str) -> Path:
    return Path(PureWindowsPath(place).as_posix())


def _ends(folder: Path, way: Path, only_elsewhere: bool = False) -> list[Path]:
    """Returns where in this folder a path may be that begins on another machine, or as CVAT's in data/, or with .."""
    parts = [part for part in way.parts if part not in ("..", "/")]
    whole = only_elsewhere and not (way.is_absolute() or ":" in "".join(parts[:1]))
    return [folder.joinpath(*parts[start:]) for start in range(1 if whole else len(parts))]


def _add_pictures(
    source: LabelSource, path: Path, place: Path, split: str, listings: Listings, read: Callable[..., Label]
) -> set[Path]:
    """Adds the pictures of a folder or of a list, each with its label file; returns the label files."""
    if place.is_dir():
        found = [(one, [_label_of(one)]) for one in files_below(place, (*PICTURE_SUFFIXES, *UNREAD_SUFFIXES))]
    else:
        roots, lines = (place.parent, path.parent), map(_posix, listed_names(place))
        found = [(line, [end for root in roots for end in _ends(root, _label_of(line))]) for line in lines]
    near = [[spelled(path, listings) for path in tried] for _, tried in found]
    files = {one.as_posix(): next(filter(Path.is_file, of), of[0]) for (one, _), of in zip(found, near, strict=True)}
    labelled = {file for file in files.values() if file.is_file()}
    if missing := [file for file in files.values() if file not in labelled]:
        count = f"{split}{'' if labelled else ' is left out'}: {len(missing)} of {len(files)} pictures"
        source.remarks.append(f"{count} have no label file, such as {missing[0]}")
    for name, file in files.items() if labelled else ():
        source.pictures.append(LabelledPicture(name, path, partial(read, file), split))
    return labelled


def _label_of(picture: Path) -> Path:
    parts = list(picture.with_suffix(".txt").parts)
    at = max((place for place, part in enumerate(parts) if part.lower() == "images"), default=None)
    return Path(*parts) if at is None else Path(*parts[:at], "labels", *parts[at + 1 :])


def _read(names: dict[int, str], overlaps: Overlaps, file: Path, size: tuple[int, int] | None = None) -> Label:
    """Paints the polygons: lines of a class and corners in shares of the picture's sides."""
    text = file.read_text(encoding="utf-8-sig") if file.is_file() else ""
    lines = [line.split() for line in text.splitlines() if line.strip()]
    outlined = [line for line in lines if len(line) >= 7]
    if unknown := {line[0] for line in outlined if int(line[0]) not in names}:
        raise ValueError(f"{file.name} has the class {min(unknown)}, which data.yaml does not name")
    shapes = [Shape(names[int(line[0])], Outline([line[1:]], side=1)) for line in outlined]
    label = paint(shapes, None, tuple(names.values()), overlaps, size)
    boxes = f"{len(lines) - len(outlined)} boxes without an outline are left out" if len(lines) > len(outlined) else ""
    return label._replace(remark="; ".join(filter(None, (label.remark, boxes))))
