"""Writing of labelled pictures from any source as a data folder that trainings and measurements read."""

import json
import shutil
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import compress
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from steadyseg.core.classes import CAMVID, ClassList, distinct_colors
from steadyseg.core.errors import InputError, printable, shorten
from steadyseg.core.system.files import read_small, whole_folder
from steadyseg.core.system.json_text import parse_json
from steadyseg.core.system.pictures import look_at, read_upright
from steadyseg.seg.data.coarse import allowed_bits, allowed_names
from steadyseg.seg.data.formats.source import (
    CLASSES_FILE,
    NOT_A_CLASS,
    NOTES_FILE,
    SPLIT_NAMES,
    UNLABELLED,
    Label,
    LabelledPicture,
    LabelSource,
    PictureFinder,
    one_line,
)
from steadyseg.seg.data.held_out import divide

COPIED = (".png", ".jpg", ".jpeg")
"""Endings of pictures that are copied; others become PNG."""


@dataclass
class Imported:
    """What an import wrote: its classes, the counts by split, and the remarks."""

    classes: ClassList
    pictures: Counter[str] = field(default_factory=Counter)
    """Number of pictures by split."""
    pixels: dict[str, np.ndarray] = field(default_factory=dict)
    """By split the pixels of each id, (256,)."""
    remarks: list[str] = field(default_factory=list)
    empty: Counter[str] = field(default_factory=Counter)
    """Number of pictures without an object by split."""


def import_labels(
    source: LabelSource,
    images: Path,
    output: Path,
    *,
    background: str | None = None,
    allows: Path | None = None,
    shares: dict[str, float],
    skip_bad: bool = False,
    overwrite: bool = False,
    on_picture: Callable[[int, int], None] = lambda done, total: None,
) -> Imported:
    """Writes `output` as a whole: pictures and labels by split, the class list and the remarks.

    Pictures are searched below `images`. Unlabelled pixels are void, or of the class `background`; pixels of a name in
    NOT_A_CLASS are always void. A source that has val or test keeps its splits; any other source is divided by
    recording. InputError for the first picture that is missing or does not fit its label; `skip_bad` leaves it out with
    a remark. InputError too where no picture of a split is labelled. `allows`: file of the network's classes that each
    class of the source allows.
    """
    classes = class_list(source, background)
    record = {"names": classes.names, "colors": classes.colors} if allows is None else coarse_record(allows, classes)
    result = Imported(classes, remarks=[printable(remark) for remark in source.remarks])
    found = find_pictures(source, images, skip_bad, result.remarks)
    given = known_splits(found, result.remarks)
    splits, remarks = (given, []) if {"val", "test"} & {*given.values()} else divide([*found], shares)
    result.remarks += remarks
    table = id_table(source.names, classes, background)
    with whole_folder(output, replace=overwrite) as folder:
        for done, (name, split) in enumerate(splits.items(), 1):
            with bad_left_out(skip_bad, result.remarks, " (--skip-bad goes on without such pictures)"):
                add_picture(result, folder, split or "train", name, *found[name], table)
            on_picture(done, len(splits))
        if not result.pictures["train"]:
            raise InputError(f"no picture is left to train on; {'; '.join(result.remarks[:3])}")
        result.remarks[:0] = empty_pictures(result, by_split=splits is given)
        result.remarks[:] = map(printable, result.remarks)  # a file's name can be invalid UTF-8
        (folder / CLASSES_FILE).write_text(json.dumps(record | {"void": UNLABELLED}, indent=1))
        (folder / NOTES_FILE).write_text("".join(f"{remark}\n" for remark in result.remarks), "utf-8")
    return result


def coarse_record(path: Path, classes: ClassList) -> dict[str, Any]:
    """Returns names, colours and `allows` of a class file, from a file {"road": ["Road"], ...} with an entry for each
    class of the labels. CamVid's names keep CamVid's order and colours."""
    try:
        allows = parse_json(read_small(path))
        if not isinstance(allows, dict) or {*allows} != {*classes.names}:
            raise InputError(f"expected an object with the keys {', '.join(classes.names)}, got {shorten(allows)}")
        sets = {str(number): allows[name] for number, name in enumerate(classes.names)}
        names = allowed_names(sets)
        own = (
            CAMVID if {*names} <= {*CAMVID.names} else ClassList(tuple(names), distinct_colors(len(names)), UNLABELLED)
        )
        allowed_bits(sets, UNLABELLED, own)
    except InputError as error:
        raise InputError(f"{path}: {error}") from error
    except (OSError, ValueError) as error:
        raise InputError(f"{path}: cannot be read ({error})") from error
    return {"names": own.names, "colors": own.colors, "allows": sets}


@contextmanager
def bad_left_out(skip_bad: bool, remarks: list[str], hint: str) -> Iterator[None]:
    """A context in which the InputError of a picture becomes a remark; without `skip_bad` it is raised with the
    hint."""
    try:
        yield
    except InputError as error:
        if not skip_bad:
            raise InputError(f"{error}{hint}") from error
        remarks.append(f"{error}; left out")


def add_picture(
    result: Imported, folder: Path, split: str, name: str, path: Path, picture: LabelledPicture, table: np.ndarray
) -> None:
    """Writes a picture and its label, and counts them; `table`: see `id_table`. A picture that is void everywhere is
    left out."""
    ids, remark = read_checked(path, picture)
    label = table[ids]
    if remark:
        result.remarks.append(f"{path.name}: {remark}")
    if (label == UNLABELLED).all():
        result.remarks.append(f"{path.name}: no pixel is labelled; left out")
        return
    if (ids == UNLABELLED).all():
        result.empty[split] += 1
    write_pair(folder, split, name, path, label)
    result.pictures[split] += 1
    counts = result.pixels.setdefault(split, np.zeros(256, np.int64))
    counts += np.bincount(label.ravel(), minlength=256)


def known_splits(found: dict[str, tuple[Path, LabelledPicture]], remarks: list[str]) -> dict[str, str]:
    """Returns train, val or test by picture, empty for any other name of a split, which gets a remark."""
    written = {name: picture.split for name, (_, picture) in found.items()}
    given = {name: SPLIT_NAMES.get(split.strip().lower(), "") for name, split in written.items()}
    others = Counter(split for name, split in written.items() if split.strip() and not given[name])
    become = "are for training" if {"val", "test"} & {*given.values()} else "have no split yet"
    for split, count in others.items():
        remarks.append(f"{count} pictures are in {shorten(split)}, which is not train, val or test: they {become}")
    return given


def empty_pictures(result: Imported, by_split: bool) -> list[str]:
    """Returns a remark about pictures without an object. InputError where no picture of the source, or of one of its
    own splits, has an object: its labels are missing or elsewhere."""
    total, empty = result.pictures.total(), result.empty.total()
    for split, count in result.empty.items():
        if empty == total or (by_split and count == result.pictures[split]):
            first = "; ".join(result.remarks[:2])
            raise InputError(f"no picture of {split} has a labelled pixel; are outlines missing? {first}")
    return [f"{empty} of {total} pictures have no labelled pixel: all of it is background"] if empty else []


def id_table(names: Sequence[str], classes: ClassList, background: str | None) -> np.ndarray:
    """Returns the written id of each id of the source, (256,) uint8; void for a name that is no class."""
    ids = {name: number for number, name in enumerate(classes.names)}
    written = [*(ids.get(name, UNLABELLED) for name in names), *[UNLABELLED] * (255 - len(names))]
    return np.array([*written, ids.get(background or "", UNLABELLED)], np.uint8)


def class_list(source: LabelSource, background: str | None) -> ClassList:
    """Returns the source's classes, and last the class of unlabelled pixels; InputError for a single class."""
    kept = [name.strip().lower() not in NOT_A_CLASS or name == background for name in source.names]
    names = tuple(compress(source.names, kept))
    colors = tuple(compress(source.colors, kept)) or distinct_colors(len(names))
    if background and background not in names:
        names, colors = (*names, background), (*colors, (96, 96, 96))
    if len(names) < 2:
        raise InputError(
            f"the labels have {len(names)} class{'es' * (not names)} ({', '.join(names)}) and unlabelled pixels are "
            "void; a network needs two: make the unlabelled pixels one by --background NAME"
        )
    if len(names) > UNLABELLED:
        raise InputError(f"the labels have {len(names)} classes; at most {UNLABELLED} are possible")
    return ClassList(names, colors, UNLABELLED)


def find_pictures(
    source: LabelSource, images: Path, skip_bad: bool, remarks: list[str]
) -> dict[str, tuple[Path, LabelledPicture]]:
    """Finds all pictures and gives them unique names: the base name, preceded by folder names where needed."""
    finder = PictureFinder(images, {picture.labelled_in for picture in source.pictures})
    found: list[tuple[Path, LabelledPicture]] = []
    for picture in source.pictures:
        with bad_left_out(skip_bad, remarks, ", or --skip-bad to go on without such pictures"):
            found.append((finder.find(picture), picture))
    if left := finder.left_over({path for path, _ in found}):
        remarks.append(f"{len(left)} pictures beside labelled ones have no label and are left out, such as {left[0]}")
    shared = {stem for stem, count in Counter(path.stem for path, _ in found).items() if count > 1}
    named: dict[str, tuple[Path, LabelledPicture]] = {}
    for path, picture in found:
        name = (f"{path.parent.name}_" if path.stem in shared else "") + path.stem
        if (other := named.setdefault(name, (path, picture))[0]) != path:
            raise InputError(f"{other} and {path}: both would be written as {name}; rename one of them")
        if named[name][1] is not picture:
            raise InputError(f"{path}: labelled twice; import each label file alone")
    return named


def read_checked(path: Path, picture: LabelledPicture) -> tuple[np.ndarray, str]:
    """Reads a label, (H, W) uint8, and its remark; InputError if it has another size than the picture.

    A size that the label file claims is compared before anything of that size is made.
    """
    size = read_upright(path).shape[:2]
    with one_line(picture.labelled_in, f"a label of {picture.named}"):
        claimed = None if picture.size is None else (int(picture.size[0]), int(picture.size[1]))
        label = picture.read(size) if claimed in (None, size) else Label(np.empty(0))
    if label.ids.shape == size:
        return label.ids, label.remark
    found = claimed or label.ids.shape
    stored = look_at(path, lambda opened: opened.size[::-1])
    turned = f", but {stored[1]}x{stored[0]} without the turn that its EXIF data ask for" if stored != size else ""
    mend = "save it turned, and label that" if turned else "give the pictures that were labelled"
    raise InputError(
        f"{path}: is {size[1]}x{size[0]}{turned}, and its label in {picture.labelled_in} is {found[1]}x{found[0]}; "
        f"{mend}"
    )


def write_pair(folder: Path, split: str, name: str, path: Path, label: np.ndarray) -> None:
    """Copies the picture (as PNG if any other kind), and writes the label, a grey PNG of ids.

    No palette PNG, because `cv2.imread(path, 0)` reads the brightness of its colours.
    """
    for place in (folder / split, folder / f"{split}annot"):
        place.mkdir(exist_ok=True)
    if path.suffix.lower() in COPIED:
        shutil.copyfile(path, folder / split / f"{name}{path.suffix.lower()}")
    else:
        Image.fromarray(read_upright(path)).save(folder / split / f"{name}.png")
    Image.fromarray(label).save(folder / f"{split}annot" / f"{name}.png")
