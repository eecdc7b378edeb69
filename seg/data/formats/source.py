"""Labelled pictures of any origin: the type that every reader returns, and the search for the named pictures."""

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple

import numpy as np

from steadyseg.core.errors import InputError
from steadyseg.core.system.json_text import parse_json

UNLABELLED = 255
"""Id of pixels that no label covers."""
PICTURE_SUFFIXES = (".png", ".jpg", ".jpeg", ".bmp", ".webp", ".tif", ".tiff")
SPLITS = ("train", "val", "test")
"""The splits of a data folder."""
SPLIT_NAMES = {name: name for name in SPLITS} | {"training": "train", "validation": "val", "valid": "val"}
"""Splits by their names in label files, in lower case."""
UPLOAD_PREFIX = 9
"""Letters that Label Studio puts before the name of an uploaded file: eight hexadecimal digits and a hyphen."""
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


class PictureFinder:
    """Finds pictures below one folder by name; where two pictures share a name, more of the path decides."""

    def __init__(self, root: Path, labels: set[Path]) -> None:
        """`labels` are files below `root` that are no pictures."""
        self.root = root
        self._by_name: dict[str, list[Path]] = {}
        for path in sorted(root.rglob("*")):
            if path.suffix.lower() in PICTURE_SUFFIXES and path not in labels:
                for name in (path.name, f"{path.stem}.*"):
                    self._by_name.setdefault(name, []).append(path)

    def find(self, picture: LabelledPicture) -> Path:
        """Returns the file; InputError where no file or several files fit."""
        parts = PurePosixPath(picture.named.replace("\\", "/")).parts
        name = parts[-1] if parts else ""  # of "" and "."
        found = self._by_name.get(name, []) or self._by_name.get(name[UPLOAD_PREFIX:], [])
        for count in range(2, len(parts) + 1):
            found = [path for path in found if path.parts[-count:-1] == parts[-count:-1]] or found
        if not found:
            raise InputError(
                f"{picture.named or 'a picture without a name'}: labelled in {picture.labelled_in}, but no such "
                f"picture lies below {self.root}; give --images DIR"
            )
        if len(found) > 1:
            raise InputError(f"{picture.named}: {found[0]} and {found[1]} have this name; give one folder by --images")
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
    except Exception as error:  # of a stranger's file: KeyError, TypeError, ValueError, ParseError, OverflowError ...
        raise InputError(f"{path}: expected {expected}, got something else ({error!r})") from error


def read_json(path: Path) -> Any:
    """Reads a JSON file; InputError for any other file."""
    with one_line(path, "JSON"):
        return parse_json(path.read_bytes())
