"""The protocol of a source of frames, with its description, losses and true labels."""

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Protocol, Self

import numpy as np

from steadyseg.core.classes import ClassList
from steadyseg.core.errors import InputError
from steadyseg.core.frame import Frame
from steadyseg.core.system.pictures import has_suffix

MAX_SIDE, MAX_PIXELS = 8192, 8192 * 4352
"""Limits of a frame in pixels per side and in all: 8K video has 7680 x 4320, in cinemas 8192 x 4320. A decoder holds
up to 20 frames at a time."""

LOSSES = {
    "decode_error": "packets or images that could not be decoded",
    "read_error": "times reading broke off",
    "corrupt_frame": "frames that the decoder marks as damaged",
    "missing_frames": "frames that the file announces but did not deliver",
    "dropped_newer_frame": "frames dropped for a newer one",
    "reconnect": "reconnections",
    "size_change": "changes of the frame size",
    "mended_time": "missing or backward time stamps mended",
    "missing_label": "frames without a label",
}
"""All causes in `Source.losses`, and the words after their number in messages."""


@dataclass(frozen=True)
class SourceInfo:
    """Properties of an opened source."""

    name: str
    """Name for display; it never holds a password or token."""
    width: int
    """Width in pixels of the first frame as shown, after rotation."""
    height: int
    fps: float
    """Nominal frames per second; the exact time of a frame is its `time_s`."""
    length: int | None
    """Number of frames that the container or folder announces; None if unknown or endless."""
    live: bool
    """True for sources that cannot wait: a slow reader gets the newest frame, and older frames count as dropped."""
    notes: tuple[str, ...] = ()
    """Messages that the user sees once, such as "rotated by 90 degrees as the file asks"."""
    pixel_shape: Fraction = Fraction(1)
    """Width over height of a pixel, which a video made of the frames states too."""
    is_picture: bool = False
    """True for a single image, whose `fps` means nothing."""


class Source(Protocol):
    """Frames with their times, in order.

    Iterate once, inside `with`; open the source again to start again. Subclasses inherit six-digit names and a `stop`
    and an `__exit__` that do nothing.
    """

    info: SourceInfo
    losses: Counter[str]
    """Losses by cause, counted while iterating; the keys are the same as in `LOSSES`."""

    def __iter__(self) -> Iterator[Frame]: ...

    def frame_name(self, index: int) -> str:
        """Base name of the files written for a frame: the image's base name, or the 6-digit frame number."""
        return frame_name(index)

    def stop(self) -> None:
        """Asks an iteration in another thread to end soon; a wait for a reconnection ends at once."""
        return None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Releases all resources."""
        return None


def frame_name(index: int) -> str:
    """The frame number with six digits, so that names sort as the frames do for 9 h of 30 Hz video."""
    return f"{index:06d}"


def check_size(name: str, width: int, height: int, max_pixels: int = MAX_PIXELS) -> None:
    """Raises InputError for frames that are empty, larger than `MAX_SIDE` per side or than `max_pixels` in all."""
    if not (0 < width <= MAX_SIDE and 0 < height <= MAX_SIDE and width * height <= max_pixels):
        raise InputError(
            f"{name}: frames are {width}x{height}; expected 1 to {MAX_SIDE} per side and at most "
            f"{max_pixels / 1e6:.1f} million pixels, so scale it down"
        )


def describe_losses(losses: Counter[str]) -> str:
    """One line such as "3 frames dropped for a newer one, 1 reconnections"; empty if nothing was lost."""
    return ", ".join(f"{count} {LOSSES[cause]}" for cause, count in losses.items() if count)


class LabelFolder:
    """True labels of a video: 8-bit grey or palette PNGs of class ids, named like their frames."""

    def __init__(self, folder: Path, classes: ClassList) -> None:
        if not folder.is_dir():
            raise InputError(f"{folder}: no such folder of labels; expected PNGs named like the frames (000123.png)")
        from steadyseg.core.system.file_names import Names
        from steadyseg.seg.data.class_file import own_classes

        self._folder = folder
        self._classes, self._own = classes, own_classes(folder.parent, classes)
        self._paths = {path.stem: path for path in folder.iterdir() if has_suffix(path, (".png",))}
        self._names = Names(self._paths)

    def check_names(self, names: set[str] | None) -> None:
        """Raises InputError if no label can match: `names` of the frames, or None for numbered frames."""
        numbered = filter(re.compile(r"\d{6}").fullmatch, self._paths)
        matching = filter(self._names.find, names) if names is not None else numbered
        if not any(True for _ in matching):
            example = min(names) if names else "000123"
            raise InputError(f"{self._folder}: no label is named like a frame; expected names such as {example}.png")

    def find(self, name: str, shape: tuple[int, ...], losses: Counter[str]) -> np.ndarray | None:
        """(H, W) uint8 ids of the frame with that name, or None, which is counted. InputError for another size."""
        if len(fit := self._names.find(name)) != 1:
            losses["missing_label"] += 1
            return None
        from steadyseg.seg.data.label_folder import read_label

        label = read_label(path := self._paths[fit[0]], self._classes, self._own)
        if label.shape != shape:
            raise InputError(f"{path}: the label is {_size(label.shape)}, its frame {_size(shape)}; they must be equal")
        return label


def _size(shape: tuple[int, ...]) -> str:
    return f"{shape[1]}x{shape[0]}"


def require_end(source: Source) -> None:
    """Raises InputError for a camera or a stream, which has no end."""
    if source.info.live:
        raise InputError(f"{source.info.name}: a live source has no end; record it first: steadyseg video ... -o FILE")
