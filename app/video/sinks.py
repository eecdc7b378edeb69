"""The protocol of a sink of rendered pictures, and the writing of masks."""

import csv
import io
import os
from collections.abc import Callable, Collection, Iterator
from pathlib import Path
from typing import Protocol, Self

import numpy as np

from steadyseg.core.classes import ClassList
from steadyseg.core.errors import InputError
from steadyseg.core.frame import Maps
from steadyseg.core.system.files import write_atomic


class Sink(Protocol):
    """Takes pictures inside `with`; leaving it, by an exception too, completes the output."""

    @property
    def notes(self) -> tuple[str, ...]:
        """Changes that the sink makes to the pictures, in words."""

    def write(self, image: np.ndarray, time_s: float) -> None:
        """Takes an (H, W, 3) uint8 RGB picture and its time in seconds from the start."""

    def __enter__(self) -> Self: ...

    def __exit__(self, *_: object) -> None: ...


WriteMasks = Callable[[Maps, str], None]
"""Takes the maps of a frame and its base name, as `Source.frame_name` gives it."""
GREY = "_uncertainty.png"
TABLE = "classes.csv"


class MaskSink:
    """A folder of PNGs per frame: NAME.png with class ids (palette colours) and NAME_uncertainty.png (grey entropy).
    The folder's classes.csv has the name and colour of each id.

    The ids are from `Maps.label`; the grey value is `Maps.entropy`, 255 = ln K. With `overwrite`, the first frame
    replaces all pairs of an earlier run, which has left its classes.csv, and nothing else. Raises InputError for a
    folder that is not empty (unless `overwrite`) or cannot be made, OSError for a full disk.
    """

    def __init__(self, folder: Path, classes: ClassList, overwrite: bool = False) -> None:
        if folder.exists() and not folder.is_dir():
            raise InputError(f"{folder}: is a file; masks need a folder")
        if folder.is_dir() and not overwrite and any(folder.iterdir()):
            raise InputError(f"{folder}: is not empty; choose another folder or allow --overwrite")
        try:
            folder.mkdir(exist_ok=True)
        except OSError as error:
            raise InputError(f"{folder}: cannot be made ({error.strerror}); choose another place") from error
        if not os.access(folder, os.W_OK):
            raise InputError(f"{folder}: cannot be written to; choose another folder")
        self._folder, self._classes, self._begun = folder, classes, False

    def write(self, maps: Maps, name: str) -> None:
        """Writes both files; `name` is the frame's base name, as `Source.frame_name` gives it."""
        if not self._begun:
            self._begun = True
            ours = (self._folder / TABLE).exists()  # otherwise the pairs are somebody else's
            for grey in self._folder.glob(f"*{GREY}") if ours else ():  # a run writes the grey file of a pair first
                grey.with_name(f"{grey.name.removesuffix(GREY)}.png").unlink(missing_ok=True)
                grey.unlink()
            write_atomic(self._folder / TABLE, class_table(self._classes).encode(), durable=False)
        for file, data in mask_files(maps, name, self._classes):
            write_atomic(self._folder / file, data, durable=False)


def check_names(names: Collection[str]) -> None:
    """Raises InputError if two frames would write the same file: a and a_uncertainty both write a_uncertainty.png."""
    for name in names:
        if (other := f"{name}{GREY}".removesuffix(".png")) in names:
            raise InputError(f"the masks of the frames {name} and {other} would both be {other}.png; rename one image")


def class_table(classes: ClassList) -> str:
    """CSV of the class of each id in a mask and of its colour, the void id last."""
    rows = [
        (number, name, *color) for number, (name, color) in enumerate(zip(classes.names, classes.colors, strict=True))
    ]
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(
        [("id", "name", "red", "green", "blue"), *rows, (classes.void_id, "void", 0, 0, 0)]
    )
    return text.getvalue()


def mask_files(maps: Maps, name: str, classes: ClassList) -> Iterator[tuple[str, bytes]]:
    """Yields (file name, PNG) of both masks of a frame, as `MaskSink` writes them."""
    from PIL import Image

    label, uncertainty = Image.fromarray(maps.label), Image.fromarray(maps.entropy)
    label.putpalette(classes.palette().tobytes())
    for file, image in ((f"{name}{GREY}", uncertainty), (f"{name}.png", label)):
        encoded = io.BytesIO()
        # Level 1: 0.9 ms instead of 1.7 ms for a 960x540 label, 5 kB instead of 3 kB.
        image.save(encoded, "png", compress_level=1)
        yield file, encoded.getvalue()
