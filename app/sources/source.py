"""The protocol of a source of frames, with its description and losses."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Protocol, Self

from steadyseg.core.errors import InputError
from steadyseg.core.frame import Frame

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


def require_end(source: Source) -> None:
    """Raises InputError for a camera or a stream, which has no end."""
    if source.info.live:
        raise InputError(f"{source.info.name}: a live source has no end; record it first: steadyseg video ... -o FILE")
