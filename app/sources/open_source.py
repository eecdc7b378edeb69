"""Opening of a source by its name: a file, an image folder, a camera, a URL or the synthetic street."""

import os
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from steadyseg.app.sources.image_folder import IMAGE_SUFFIXES, FolderSource, list_images
from steadyseg.app.sources.live import CameraConnection, LiveSource, Wanted
from steadyseg.app.sources.source import MAX_PIXELS, Source, SourceInfo
from steadyseg.app.sources.url import open_url, require_separator
from steadyseg.app.sources.video_file import open_file
from steadyseg.core.classes import CAMVID, ClassList
from steadyseg.core.errors import InputError
from steadyseg.core.frame import Frame

STREET_FRAMES = 250
EXPECTED = (
    "a video file, an image folder, a camera number (with size, rate and format: 0:1280x720:30:MJPG), an "
    "address (rtsp, rtmp, http, https, udp), or street[:SEED[:FRAMES]]"
)
CAMERA = re.compile(r"([0-9]{1,4})(?::([0-9]{1,5})x([0-9]{1,5}))?(?::([0-9]{1,3}))?(?::([A-Za-z][A-Za-z0-9]{3}))?")
"""A camera's number, and what it is asked for: width x height, frames per second, the four letters of a format."""


def open_source(
    spec: str | int | Path,
    *,
    classes: ClassList = CAMVID,
    max_pixels: int = MAX_PIXELS,
) -> Source:
    """Opens a source: its name, a camera's number, or the path of a file or image folder.

    A text can name each of them. As a text, a file whose name is a number or begins like the street is written ./NAME.
    Frames of a file have at most `max_pixels`; frames of the street have labels if `classes` are CamVid's. Raises
    InputError, one line, for a source that cannot be opened.
    """
    if isinstance(spec, Path):
        return _open_path(spec, max_pixels)
    spec = str(spec)
    if camera := CAMERA.fullmatch(spec):
        width, height, fps = (int(part) if part else None for part in camera.group(2, 3, 4))
        return _open_camera(int(camera[1]), Wanted(width, height, fps, (camera[5] or "").upper()))
    if "://" in spec:
        return open_url(spec)
    if is_street(spec):
        return _open_street(spec, classes)
    if not os.path.exists(spec):
        require_separator(spec)  # before pathlib takes one of two slashes away
    return _open_path(Path(spec), max_pixels)


def is_path(spec: str) -> bool:
    """Returns False for the name of a camera, an address or a synthetic street."""
    return not (CAMERA.fullmatch(spec) or "://" in spec or is_street(spec))


def is_live(spec: str) -> bool:
    """Returns True for the name of a camera, or the address of a live stream."""
    return bool(CAMERA.fullmatch(spec)) or spec.lower().startswith(
        ("rtsp://", "rtsps://", "rtmp://", "rtmps://", "udp://")
    )


def is_street(spec: str) -> bool:
    """Returns True for the name of a synthetic street."""
    return spec == "street" or spec.startswith("street:")


def _open_camera(device: int | str, wanted: Wanted) -> Source:
    return LiveSource(lambda losses, stopped: CameraConnection(device, losses, stopped, wanted))


def _open_street(spec: str, classes: ClassList) -> Source:
    match = re.fullmatch(r"street(?::(\d{1,9}))?(?::(\d{1,9}))?", spec)
    if match is None or match[2] == "0":
        raise InputError(f"not a street: {spec!r}; expected street, street:SEED or street:SEED:FRAMES (street:7:250)")
    return StreetSource(int(match[1] or 0), int(match[2] or STREET_FRAMES), classes)


def _open_path(path: Path, max_pixels: int) -> Source:
    try:
        is_folder, is_file, is_device = path.is_dir(), path.is_file(), path.is_char_device()
        exists = path.exists()
    except OSError as error:
        raise InputError(f"{str(path)[:80]!r} cannot be looked at ({error.strerror}); expected {EXPECTED}") from error
    if not exists:
        raise InputError(f"no such file or folder: {str(path)!r}; expected {EXPECTED}")
    if is_device:
        return _open_camera(str(path), Wanted())
    if not (is_folder or is_file):
        raise InputError(f"{path}: neither a regular file nor a folder; expected {EXPECTED}")
    if is_folder or path.suffix.lower() in IMAGE_SUFFIXES:
        return FolderSource(list_images(path) if is_folder else (path,), str(path), max_pixels)
    return open_file(path, max_pixels)


class StreetSource(Source):
    """A finite drive down the street of one seed; labelled if the reader's classes are the street's."""

    def __init__(self, seed: int = 0, frames: int = STREET_FRAMES, classes: ClassList = CAMVID) -> None:
        from steadyseg.street.drive import Street

        self.losses: Counter[str] = Counter()
        self._street = Street(seed=seed)
        self._frames = frames
        self._labelled = classes == CAMVID
        street, notes = self._street, () if self._labelled else ("the street's labels are CamVid's and are left away",)
        size = (street.width, street.height)
        self.info = SourceInfo(f"street:{seed}", *size, street.fps, length=frames, live=False, notes=notes)

    def __iter__(self) -> Iterator[Frame]:
        frames = self._street.frames(self._frames, 0)
        return frames if self._labelled else (replace(frame, label=None) for frame in frames)
