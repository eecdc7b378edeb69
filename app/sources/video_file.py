"""A recorded video, from a file or from a URL of known length: all frames, as fast as the caller takes them."""

import threading
from collections import Counter
from collections.abc import Generator, Iterator
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING

from steadyseg.app.sources.content import describe_file
from steadyseg.app.sources.ffmpeg import (
    FILE_OPTIONS,
    count_announced,
    decode,
    nominal_fps,
    open_container,
    picture_notes,
    pixel_shape,
    rate_is_unknown,
    stated_end_s,
    to_rgb,
    video_stream,
)
from steadyseg.app.sources.source import MAX_PIXELS, Source, SourceInfo
from steadyseg.app.sources.times import FrameClock, stamp_s
from steadyseg.core.errors import InputError
from steadyseg.core.frame import Frame

if TYPE_CHECKING:
    from av.container import InputContainer
    from av.video.frame import VideoFrame

MEASURED = 10
"""First frames that give the rate of a file, if it announces none or the rate of its clock."""

TOLERATED = 2
"""Longest steps between frames by which a stated duration may exceed the frames: it is rounded, or the last stands."""


def open_file(path: Path, max_pixels: int = MAX_PIXELS) -> "RecordedSource":
    """Opens a video file. Raises InputError, one line, unless it holds at least one decodable frame."""
    import av

    try:
        if path.stat().st_size == 0:
            raise InputError(f"{path}: the file is empty (0 bytes)")
        path.open("rb").close()
        container = open_container(str(path.absolute()), FILE_OPTIONS, max_pixels=max_pixels)
    except av.error.FFmpegError as error:
        words = describe_file(path)
        reason = f": it is {words}" if words else f" ({error.strerror}); expected mp4, mkv, mov, avi, webm ..."
        raise InputError(f"{path}: not a readable video{reason}") from None
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror})") from error
    return RecordedSource(container, str(path), max_pixels)


class RecordedSource(Source):
    """A source that owns its container. Opening decodes the first frame, so that every opened source has one."""

    def __init__(self, container: "InputContainer", name: str, max_pixels: int = MAX_PIXELS) -> None:
        self.losses: Counter[str] = Counter()
        self._container = container
        self._stopped = threading.Event()
        self._begun = False
        try:
            self._stream = video_stream(container, name, low_delay=False, max_pixels=max_pixels)
            self._frames = decode(container, self._stream, self.losses, self._stopped)
            first = next(self._frames, None)
            if first is None:
                raise InputError(
                    f"{name}: no frame could be decoded; is the file truncated or damaged, or are its frames larger "
                    f"than {max_pixels / 1e6:.1f} million pixels?"
                )
            self._first = [first, *(islice(self._frames, MEASURED - 1) if rate_is_unknown(self._stream) else ())]
            self.info = self._describe(name, first)
        except BaseException:
            container.close()
            raise

    def __iter__(self) -> Iterator[Frame]:
        if self._begun:
            raise RuntimeError(f"{self.info.name} has been read already; open it again")
        self._begun = True
        return self._read()

    def stop(self) -> None:
        self._stopped.set()

    def __exit__(self, *_: object) -> None:
        # Closing the generator first raises ValueError, not a crash in C, if another thread is still decoding.
        self._frames.close()
        self._container.close()

    def _describe(self, name: str, first: "VideoFrame") -> SourceInfo:
        height, width = to_rgb(first, name).shape[:2]
        return SourceInfo(
            name=name,
            width=width,
            height=height,
            fps=nominal_fps(self._container, self._stream, [stamp_s(frame) for frame in self._first]),
            length=count_announced(self._container, self._stream),
            live=False,
            notes=picture_notes(self._container, self._stream, first),
            pixel_shape=pixel_shape(self._stream, first),
        )

    def _read(self) -> Generator[Frame, None, None]:
        clock = FrameClock(1 / self.info.fps, self.losses)
        shape = (self.info.height, self.info.width)
        index, last_s, longest_s = -1, stamp_s(self._first[0]) or 0.0, 1 / self.info.fps
        for index, picture in enumerate(chain(self._first, self._frames)):
            image = to_rgb(picture, self.info.name)
            resized, shape = image.shape[:2] != shape, image.shape[:2]
            self.losses["size_change"] += resized
            now_s = stamp_s(picture) or last_s
            last_s, longest_s = max(last_s, now_s), max(longest_s, now_s - last_s)
            yield Frame(image, index, clock(stamp_s(picture)), discontinuity=index == 0 or resized)
        if not self._stopped.is_set():
            left_s = stated_end_s(self._container, self._stream) - last_s - longest_s
            unseen = round(left_s * self.info.fps) if left_s > TOLERATED * longest_s else 0
            missing = unseen if self.info.length is None else self.info.length - (index + 1)
            self.losses["missing_frames"] += max(0, missing)
