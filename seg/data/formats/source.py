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
from steadyseg.core.system.json_text import parse_json
from steadyseg.core.system.pictures import HEIC, has_suffix

UNLABELLED = 255
"""Id of pixels that no label covers."""
PICTURE_SUFFIXES = (".png", ".jpg", ".jpeg", ".bmp", ".webp", ".tif", ".tiff", ".avif", *HEIC)
UNREAD_SUFFIXES = (".jxl", ".gif")
"""Endings of pictures that no reader here opens."""
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
    read: Callable[[], Label]
    split: str = ""
    """Name of its split in the source, as written there; empty without a split."""
    size: tuple[Any, Any] | None = None
    """(height, width) as the label file says; None where the label is a picture itself."""
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


def listed_names(path: Path) -> list[str]:
    """Returns the lines of a list, without empty lines. A list that does not exist has no lines."""
    lines = path.read_text(errors="replace").splitlines() if path.is_file() else []
    return [line.strip() for line in lines if line.strip()]


def known_name(listed: str, known: Collection[str]) -> str:
    """Returns the known name in a line of a list. The line is a name or path, which may have spaces, or begins with it.

    For a line without a known name, it returns the line's end without folders and a picture's suffix."""
    paths = Path(listed), Path(listed.split()[0])
    names = [path.stem if has_suffix(path, PICTURE_SUFFIXES) else path.name for path in paths]
    return next((name for name in (listed, *names) if name in known), names[0])


class PictureFinder:
    """Finds pictures below one folder by name; where two pictures share a name, more of the path decides."""

    def __init__(self, root: Path, labels: set[Path]) -> None:
        """`labels` are files below `root` that are no pictures."""
        self.root = root
        self._by_name: dict[str, list[Path]] = {}
        for path in files_below(root, (*PICTURE_SUFFIXES, *UNREAD_SUFFIXES)):
            if path not in labels and not path.parent.name.startswith(VOC_LABELS):
                for name in (path.name, f"{path.stem}.*"):
                    self._by_name.setdefault(name, []).append(path)

    def find(self, picture: LabelledPicture) -> Path:
        """Returns the file; InputError where no file or several files fit."""
        parts = PurePosixPath(picture.named.replace("\\", "/")).parts
        name = parts[-1] if parts else ""  # "" and "." have no parts
        uploaded = UPLOAD_PREFIX.sub("", name) if picture.is_upload else name
        found = self._by_name.get(name, []) or self._by_name.get(uploaded, [])
        for count in range(2, len(parts) + 1):
            found = [path for path in found if path.parts[-count:-1] == parts[-count:-1]] or found
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
        raise InputError(f"{path}: expected {expected}, got something else ({error!r})") from error


def read_json(path: Path) -> Any:
    """Reads a JSON file; InputError for any other file."""
    with one_line(path, "JSON"):
        return parse_json(path.read_bytes())
