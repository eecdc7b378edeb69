"""The classes of a data folder, by a flag, by the folder's own file, or CamVid's for CamVid's pictures."""

import csv
from pathlib import Path

from steadyseg.core.classes import CAMVID, CLASS_LISTS, ClassList, distinct_colors
from steadyseg.core.errors import InputError
from steadyseg.core.system.file_names import PICTURE_SUFFIXES
from steadyseg.core.system.files import read_small
from steadyseg.core.system.json_text import parse_json
from steadyseg.core.system.pictures import has_suffix
from steadyseg.seg.data.camvid_original import find_original, find_published_split
from steadyseg.seg.data.coarse import allowed_names
from steadyseg.seg.data.formats.cityscapes import CITYSCAPES, LABELS, is_cityscapes
from steadyseg.seg.data.formats.source import CLASSES_FILE


def classes_of(data: Path, choice: Path | None) -> ClassList:
    """Returns the classes that `choice` names (see `read_classes`), or the classes of the folder `data` or `street`.

    InputError if no class list is found.
    """
    if choice is not None:
        return read_classes(choice)
    if (data / CLASSES_FILE).is_file():
        return read_classes(data / CLASSES_FILE)
    if is_cityscapes(data):
        return CITYSCAPES
    if str(data) != "street" and (data / "train").is_dir() and find_original(data, "train") is None:
        names = [path.stem for path in (data / "train").iterdir() if has_suffix(path, PICTURE_SUFFIXES)]
        if not all(find_published_split(name) for name in names):
            raise InputError(
                f"{data}: its pictures are not CamVid's, so name their classes in {data / CLASSES_FILE} "
                '({"names": [...], "colors": [[r, g, b], ...], "void": id}). '
                "A training also takes --classes FILE.json; CamVid's 11 are --classes camvid"
            )
    return CAMVID


def own_classes(root: Path, classes: ClassList) -> ClassList:
    """Returns the folder's own class list, else `classes`. InputError where the folder's list has names that `classes`
    lacks; order and colours may differ, but not Cityscapes' order."""
    if is_cityscapes(root):
        own, file = CITYSCAPES, root / LABELS
    elif (root / CLASSES_FILE).is_file():
        own, file = read_classes(root / CLASSES_FILE), root / CLASSES_FILE
    else:
        return classes
    if own.names != classes.names and (file.name != CLASSES_FILE or set(own.names) - set(classes.names)):
        known = ", ".join(classes.names[:4])
        raise InputError(f"{file}: these labels are not of the classes {known}, ...; give data of the network's names")
    return own


def read_classes(path: Path) -> ClassList:
    """Returns a class list by its name (camvid, camvid-31), or from a JSON file, where colours may be left out. A .csv
    file is a mask folder's table of id, name, red, green and blue, whose last row is void."""
    if str(path) in CLASS_LISTS:
        return CLASS_LISTS[str(path)]
    try:
        if path.suffix == ".csv":
            _, *rows, void = csv.reader(read_small(path).decode("utf-8-sig").splitlines())
            if [row[0] for row in rows] != [*map(str, range(len(rows)))] or void[1] != "void":
                raise ValueError("the ids are not 0, 1, ... with void last")
            return ClassList.of_record([row[1] for row in rows], [[*map(int, row[2:])] for row in rows], int(void[0]))
        record = parse_json(read_small(path))
        record = {"names": record} if isinstance(record, list) else record
        names = record["names"] if "names" in record or "allows" not in record else allowed_names(record["allows"])
        colors = record["colors"] if "colors" in record else [list(color) for color in distinct_colors(len(names))]
        classes = ClassList.of_record(names, colors, record.get("void", 255))
        if classes.void is None:
            raise InputError("it is a classifier's class list; segmentation needs colours and a void id")
        return classes
    except InputError as error:
        raise InputError(f"{path}: {error}") from error
    except OSError as error:
        raise InputError(f"{path}: the class list cannot be read ({error.strerror})") from error
    except (ValueError, LookupError, TypeError, AttributeError, csv.Error) as error:
        record = 'JSON {"names": [...], "colors": [[r, g, b], ...], "void": id}'
        expected = "a table of `video --masks`" if path.suffix == ".csv" else record
        found = f"found no {error}" if isinstance(error, KeyError) else f"got {error!r}"
        raise InputError(f"{path}: expected {expected}, {found}") from error
