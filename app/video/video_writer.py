"""A video file that browsers play, complete even if the work is cut short."""

import errno
import os
import secrets
import shutil
from collections import Counter
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, Self

import numpy as np

from steadyseg.app.opencv import opencv
from steadyseg.core.errors import InputError
from steadyseg.core.system.files import DISK_ERRORS, lock, partial_path, remove_leftovers, require_place
from steadyseg.core.system.interrupts import uninterrupted

if TYPE_CHECKING:
    from av.container import OutputContainer
    from av.video.frame import VideoFrame
    from av.video.stream import VideoStream

CONTAINERS = {".mp4": "mp4", ".mov": "mov", ".mkv": "matroska"}
TIME_BASE = Fraction(1, 90_000)
"""Time base of the file: exact for 24, 25, 30 and 30000/1001 frames a second, and within 6 us of any other time."""
ENCODER = {"preset": "superfast", "crf": "20", "bf": "0"}
"""Measured on 120 frames of 960x540 motorway with colour conversion, on one CPU core. A frame takes 13.1 ms, 8.1 kB and
39.5 dB with veryfast. With superfast it takes 7.6 ms, 13.5 kB and 40.0 dB, with ultrafast 4.0 ms, 17.0 kB and 39.8 dB.
At 960x360 veryfast takes 8.0 ms, superfast 4.8 ms, ultrafast 2.4 ms. So veryfast would cost 40 % of a 30 Hz frame's
33 ms. Ultrafast saves 3.5 ms and makes the file a quarter larger. A second thread changes the total time by less than
1 ms, but works in parallel to the caller.

No B-frames (bf): with them the times between decoding and display of frames a quarter of an hour apart exceed 2^28
ticks, and FFmpeg 5.1 then loses frames (libavformat/mov.c: mov_read_ctts). Without them a frame of this clip takes 12 %
more bytes, at 0.25 dB more."""
DELAYED = 5
"""Number of frames that the encoder holds and the file lacks: 4 with these settings (measured), and the next frame. No
encoded frame is larger than raw: noise, the worst case, takes 0.55 of the raw size."""
INDEX_ENTRY, BOOKKEEPING = 32, 64 * 2**10
"""Bytes per frame in the index (20 were measured, with random times), and bytes of everything else."""
LONGEST_GAP = 3600 * TIME_BASE.denominator
"""Longest time between two frames in ticks, one hour: MP4 has 31 bits, 6.6 hours, for the time of all frames that an
encoder holds."""
BT709 = RANGE_TV = 1
"""Colour matrix to state in the file: players otherwise guess it from the picture's height."""


class H264:
    """An encoder of pictures of one size in yuv420p, at their own times. Changes to pictures and times are counted."""

    _container: "OutputContainer | None" = None
    _stream: "VideoStream | None" = None

    def __init__(self, width: int, height: int, fps: float, pixel_shape: Fraction) -> None:
        self._size, self._fps, self._pixel_shape = (width, height), fps, pixel_shape
        self._last_tick, self._shortened = -1, 0
        self._changes: Counter[str] = Counter()

    @property
    def notes(self) -> tuple[str, ...]:
        width, height = self._size
        padded = width % 2 or height % 2
        even = (f"padded by one pixel to {width + width % 2}x{height + height % 2} (H.264 needs even sides)",)
        return (even if padded else ()) + tuple(f"{count} {change}" for change, count in self._changes.items())

    def _start(self, container: "OutputContainer", options: dict[str, str]) -> None:
        """Adds the stream to the container; call it before `_picture`."""
        width, height = self._size
        stream = container.add_stream("libx264", rate=Fraction(self._fps).limit_denominator(1001), options=options)
        stream.width, stream.height = width + width % 2, height + height % 2
        stream.pix_fmt = "yuv420p"
        stream.codec_context.sample_aspect_ratio = self._pixel_shape
        stream.thread_count = 2
        stream.codec_context.time_base = stream.time_base = TIME_BASE
        for tag in ("colorspace", "color_primaries", "color_trc"):
            setattr(stream.codec_context, tag, BT709)
        stream.codec_context.color_range = RANGE_TV
        self._container, self._stream = container, stream

    def _picture(self, image: np.ndarray, time_s: float) -> "VideoFrame":
        """An (H, W, 3) uint8 RGB picture as the encoder takes it."""
        import av

        rgb = av.VideoFrame.from_ndarray(self._fitted(image), format="rgb24")
        picture = rgb.reformat(format="yuv420p", dst_colorspace=BT709, dst_color_range=RANGE_TV, threads=1)
        picture.pts, picture.time_base = self._tick(time_s), TIME_BASE
        return picture

    def _tick(self, time_s: float) -> int:
        """The next tick of the encoder, which needs rising times; frames of equal times are one tick (11 us) apart."""
        tick = round(time_s / TIME_BASE) - self._shortened
        if tick - self._last_tick > LONGEST_GAP:
            self._shortened += tick - self._last_tick - LONGEST_GAP
            self._changes["gaps between frames shortened to one hour (MP4 holds no long ones)"] += 1
            tick = self._last_tick + LONGEST_GAP
        if tick <= self._last_tick:
            self._changes["frames moved to a later time (they came with the time of the one before, or earlier)"] += 1
        self._last_tick = max(tick, self._last_tick + 1)
        return self._last_tick

    def _fitted(self, image: np.ndarray) -> np.ndarray:
        width, height = self._size
        if image.shape[:2] != (height, width):
            self._changes[f"frames of another size fitted into {width}x{height}"] += 1
            image = letterbox(image, width, height)
        if width % 2 or height % 2:
            cv2 = opencv()
            image = cv2.copyMakeBorder(image, 0, height % 2, 0, width % 2, cv2.BORDER_REPLICATE)
        return np.ascontiguousarray(image)


class VideoSink(H264):
    """An H.264 file (yuv420p, index at the front) that browsers play.

    Frame times are kept, variable rates included. The file is written beside its place under a hidden name. It moves to
    its place when the `with` ends, also by Ctrl-C or an exception, and then plays the frames so far. Construction
    raises InputError for a path that cannot be written. A full disk raises OSError while the end of the file still has
    room.
    """

    def __init__(
        self,
        path: Path,
        width: int,
        height: int,
        fps: float,
        overwrite: bool = False,
        pixel_shape: Fraction = Fraction(1),
    ) -> None:
        super().__init__(width, height, fps, pixel_shape)
        require_place(path, "a video", CONTAINERS, overwrite=overwrite)
        self._path = path
        self._partial = partial_path(path)
        self._lock: BinaryIO | None = None
        self._overwrite, self._written = overwrite, 0

    def write(self, image: np.ndarray, time_s: float) -> None:
        if self._container is None or self._stream is None:
            raise RuntimeError("a VideoSink takes frames inside `with` only")
        self._check_room()
        packets = self._stream.encode(self._picture(image, time_s))
        try:
            self._container.mux(packets)
        except OSError as error:
            raise self._unwritable(error) from error
        self._written += 1

    def __enter__(self) -> Self:
        import av

        try:
            remove_leftovers(self._path, 0.0)
            self._lock = self._partial.open("xb")
            lock(self._lock)
            if os.name == "nt":  # Windows renames no open file, and has no such lock
                self._lock.close()
        except OSError as error:
            if error.errno in DISK_ERRORS:
                raise self._unwritable(error) from error
            raise InputError(f"{self._path}: cannot be written ({error.strerror}); choose another folder") from error
        container = av.open(
            str(self._partial.absolute()),
            "w",
            format=CONTAINERS[self._path.suffix.lower()],
            options={} if self._path.suffix.lower() == ".mkv" else {"movflags": "+faststart"},
        )
        self._start(container, ENCODER)
        return self

    def __exit__(self, *_: object) -> None:
        container, stream = self._container, self._stream
        self._container = self._stream = None
        if container is None or stream is None:
            return
        with uninterrupted():  # the index is written now, and without it nothing plays
            try:
                self._finish(container, stream)
            finally:
                self._partial.unlink(missing_ok=True)
                if self._lock is not None:
                    self._lock.close()

    def _finish(self, container: "OutputContainer", stream: "VideoStream") -> None:
        if not self._written:
            container.close()
            return
        try:
            with container:
                container.mux(stream.encode())
        except OSError as error:
            raise self._unwritable(error) from error
        if not self._overwrite and self._path.exists():
            other = self._path.with_stem(f"{self._path.stem}-{secrets.token_hex(4)}")
            os.replace(self._partial, other)
            raise InputError(f"{self._path}: appeared during the work and is left alone; this video is {other.name}")
        os.replace(self._partial, self._path)

    def _check_room(self) -> None:
        """Raises OSError unless the disk has room for the frames that the encoder holds, at raw size, and the index."""
        width, height = self._size
        needed = DELAYED * width * height * 3 // 2 + BOOKKEEPING + INDEX_ENTRY * self._written
        if shutil.disk_usage(self._path.parent).free < needed:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(self._path))

    def _unwritable(self, error: OSError) -> OSError:
        return OSError(error.errno, error.strerror, str(self._path))


def letterbox(image: np.ndarray, width: int, height: int) -> np.ndarray:
    """(height, width, 3): the picture as large as it fits, with its aspect kept, centred on black."""
    cv2 = opencv()
    scale = min(width / image.shape[1], height / image.shape[0])
    inner = (min(width, max(1, round(image.shape[1] * scale))), min(height, max(1, round(image.shape[0] * scale))))
    left, top = (width - inner[0]) // 2, (height - inner[1]) // 2
    canvas = np.zeros((height, width, 3), np.uint8)
    canvas[top : top + inner[1], left : left + inner[0]] = cv2.resize(image, inner, interpolation=cv2.INTER_AREA)
    return canvas
