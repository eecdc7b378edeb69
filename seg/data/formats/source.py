"""Labelled pictures of any origin: the type that every reader returns, and the search for the named pictures."""

import contextlib
import os
import re
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple

import numpy as np

from steadyseg.core.errors import InputError
from steadyseg.core.system.file_names import PICTURE_SUFFIXES, UNREAD_SUFFIXES, Names, same_end
from steadyseg.core.system.files import read_small
from steadyseg.core.system.json_text import parse_json
from steadyseg.core.system.pictures import has_suffix

UNLABELLED = 255
"""Id of pixels that no label covers."""
MAX_LABEL_BYTES = 2**31
"""Limit of a label file in JSON or XML; COCO's own have up to 0.5 GB."""
NOT_A_CLASS = ("void", "unlabelled", "unlabeled", "ignore", "ignored", "__ignore__")
"""Names, in lower case, of what is neither learned nor measured."""
VOC_LABELS = "Segmentation"
"""Beginning of the names of VOC's folders of masks: SegmentationClass, SegmentationObject."""
CLASSES_FILE, NOTES_FILE = "classes.json", "notes.txt"
"""Files of a data folder: what its labels mean, and all remarks of its import."""
SPLITS = ("train", "val", "test")
"""The splits of a data folder."""
SPLIT_NAMES = {name: name for name in SPLITS} | {"training": "train", "validation": "val", "valid": "val"}
"""Splits by their names in label files, in lower case."""
UPLOAD_PREFIX = re.compile(r"^[0-9a-f]{8}-")
"""Label Studio puts this before the name of an uploaded file."""
Color = tuple[int, int, int]


class Label(NamedTuple):
    """A label of a picture, and a remark about it without the picture's name."""

    ids: np.ndarray
    """(H, W) uint8: class ids, UNLABELLED elsewhere."""
    remark: str = ""


class LabelledPicture(NamedTuple):
    """The name of a picture in the label source, and the function that reads its label."""

    named: str
    """A file name with the known part of its path; `NAME.*` stands for any picture of that base name."""
    labelled_in: Path
    read: Callable[..., Label]
    """Function that takes the (height, width) of the picture, which it needs where `size` is None."""
    split: str = ""
    """Name of its split in the source, as written there; empty without a split."""
    size: tuple[Any, Any] | None = None
    """(height, width) as the label file says; None where it says none, or the label is a picture itself."""
    is_upload: bool = False
    """True where the name may begin with an UPLOAD_PREFIX that the picture here lacks."""


@dataclass(frozen=True)
class LabelSource:
    """The content of a label file or folder."""

    format: str
    names: tuple[str, ...]
    """Class names by id."""
    colors: tuple[Color, ...] = ()
    """RGB by class id; empty if the source has no colours."""
    pictures: list[LabelledPicture] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)
    """Lines about the omitted parts."""


def claimed_size(height: Any, width: Any) -> tuple[Any, Any] | None:
    """Returns the size that a label file says; None where a side is absent, empty or 0."""
    return (height, width) if height and width else None


def files_below(root: Path, suffixes: Collection[str]) -> list[Path]:
    """Returns the files below a folder whose names end in one of the suffixes, sorted.

    Hidden files and folders, the __MACOSX of Mac archives and the folders of earlier imports are left out.
    """
    found: list[Path] = []
    for folder, folders, files in os.walk(root):
        here = Path(folder)
        folders[:] = [name for name in folders if not (name[0] == "." or name == "__MACOSX" or _written(here / name))]
        found += [here / name for name in files if has_suffix(here / name, suffixes)]
    return sorted(found)


def _written(folder: Path) -> bool:
    """Returns True for the folder that an import wrote."""
    return all((folder / name).is_file() for name in (CLASSES_FILE, NOTES_FILE))


class PictureFinder:
    """Finds pictures below one folder by name; where two pictures share a name, more of the path decides."""

    def __init__(self, root: Path, labels: set[Path]) -> None:
        """`labels` are files below `root` that are no pictures."""
        self.root = root
        found = files_below(root, (*PICTURE_SUFFIXES, *UNREAD_SUFFIXES))
        self.pictures = [path for path in found if path not in labels and not path.parent.name.startswith(VOC_LABELS)]
        self._by_name: dict[str, list[Path]] = {}
        for path in self.pictures:
            for name in (path.name, f"{path.stem}.*"):
                self._by_name.setdefault(name, []).append(path)
        self._names = Names(self._by_name)

    def find(self, picture: LabelledPicture) -> Path:
        """Returns the file; InputError where no file or several files fit."""
        parts = PurePosixPath(picture.named.replace("\\", "/")).parts
        name = parts[-1] if parts else ""  # "" and "." have no parts
        uploaded = UPLOAD_PREFIX.sub("", name) if picture.is_upload else name
        known = self._names.find(name) or self._names.find(uploaded)
        found = [path for one in known for path in self._by_name[one]]
        for count in range(2, len(parts) + 1):
            found = same_end(found, parts[-count:]) or found
        if not found:
            raise InputError(
                f"{picture.named or 'a picture without a name'}: labelled in {picture.labelled_in}, but no such "
                f"picture lies below {self.root}; give --images DIR"
            )
        if len(found) > 1:
            raise InputError(f"{picture.named}: {found[0]} and {found[1]} have this name; give one folder by --images")
        if found[0].suffix.lower() in UNREAD_SUFFIXES:
            raise InputError(f"{found[0]}: pictures of this kind are not read; convert it to PNG or JPEG")
        return found[0]

    def left_over(self, found: Collection[Path]) -> list[Path]:
        """Returns the other pictures in the folders of those that were found."""
        folders = {path.parent for path in found}
        return [path for path in self.pictures if path.parent in folders and path not in found]


@contextlib.contextmanager
def one_line(path: Path, expected: str) -> Iterator[None]:
    """A context in which any error of a parser becomes an InputError with the file's name."""
    try:
        yield
    except InputError:
        raise
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror})") from error
    except Exception as error:  # a stranger's file may raise anything: KeyError, TypeError, ParseError, OverflowError
        detail = str(error) if type(error) is ValueError else repr(error)  # the importers' own errors are words
        raise InputError(f"{path}: expected {expected}, got something else ({detail})") from error


def read_json(path: Path) -> Any:
    """Reads a JSON file; InputError for any other file."""
    with one_line(path, "JSON"):
        return parse_json(read_small(path, MAX_LABEL_BYTES))
