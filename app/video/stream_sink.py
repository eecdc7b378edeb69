"""A live stream to a media server. FFmpeg writes it in a process of its own, since FFmpeg waits for a silent server for
ever."""

import contextlib
from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import Any, Self
from urllib.parse import urlsplit

import numpy as np

from steadyseg.app.scale.engines.processes import OneProcess, WorkerLost
from steadyseg.app.sources.url import redact
from steadyseg.app.video.video_writer import H264, TIME_BASE
from steadyseg.core.errors import InputError

FORMATS = {"rtsp": "rtsp", "rtmp": "flv", "rtmps": "flv", "udp": "mpegts"}
"""FFmpeg's container by scheme."""
OPTIONS = {"rtsp_transport": "tcp", "flush_packets": "1"}
"""Options of the containers that have them: without `flush_packets` frames wait until a buffer is full."""
ENCODER = {
    "preset": "superfast",
    "tune": "zerolatency",
    "crf": "23",
    "maxrate": "6M",
    "bufsize": "6M",
    "forced-idr": "1",
}
"""Without `zerolatency` the encoder holds back frames; services take up to 6 Mbit/s."""
KEY_TICKS = int(2 / TIME_BASE)
"""Ticks between key frames: a viewer who joins waits for the next one. Media servers ask for 1 to 4 seconds."""
OPEN_S, SILENT_S = 30.0, 10.0
"""A server counts as lost if it does not answer within `OPEN_S`, process start included, or takes no frame within
`SILENT_S`."""


def is_stream(output: str) -> bool:
    """True for an address, False for a file."""
    return "://" in output


def require_stream(url: str) -> None:
    """Raises InputError unless the scheme of the address is in `FORMATS`."""
    try:
        scheme = urlsplit(url).scheme.lower()
    except ValueError as error:  # the message holds no part of the address
        raise InputError(f"not an address ({error}); expected {', '.join(FORMATS)} and a host, or a file") from None
    if scheme not in FORMATS:
        raise InputError(f"{redact(url)}: no stream is written there; expected {', '.join(FORMATS)} or a file")


class StreamSink:
    """A live H.264 stream (yuv420p, a key frame every 2 s) to an address of `FORMATS`.

    Raises InputError if the server does not answer at the start, or is lost later.
    """

    def __init__(self, url: str, width: int, height: int, fps: float, pixel_shape: Fraction) -> None:
        self._url, self._written = url, 0
        self.notes = (f"live stream of {width}x{height}, {fps:g} frames/s, H.264, without sound, to {redact(url)}",)
        self._picture = (width, height, fps, pixel_shape)
        self._process: OneProcess | None = None

    def write(self, image: np.ndarray, time_s: float) -> None:
        self._ask(f"the stream was lost after {self._written} frames", SILENT_S, _write, image, time_s)
        self._written += 1

    def __enter__(self) -> Self:
        self._process = OneProcess()
        failure = "cannot be opened; is the address right and the server up?"
        self._ask(failure, OPEN_S, _open, self._url, *self._picture)
        return self

    def __exit__(self, *_: object) -> None:
        if self._process:  # else the stream was lost
            with contextlib.suppress(InputError):
                self._ask("cannot be ended", SILENT_S, _close)
        self._end()

    def _end(self) -> None:
        if self._process:
            self._process.kill()
        self._process = None

    def _ask(self, failure: str, limit_s: float, task: Callable[..., object], *arguments: object) -> None:
        """Runs a task in the writer's process. If it fails, ends the process and raises InputError with the reason."""
        assert self._process
        try:
            notes = self._process.result(self._process.submit(task, *arguments), limit_s)
        except (InputError, WorkerLost, TimeoutError) as error:
            self._end()
            reason = str(error) or f"no answer within {limit_s:g} s"
            raise InputError(f"{redact(self._url)}: {failure} ({reason})") from None
        self.notes = (self.notes[0], *(notes or self.notes[1:]))


@contextlib.contextmanager
def refusing() -> Iterator[None]:
    """Turns an error of FFmpeg into an InputError with its reason, without the address."""
    import av

    try:
        yield
    except (av.error.FFmpegError, OSError) as error:
        raise InputError(error.strerror or type(error).__name__) from None


class StreamWriter(H264):
    """The encoder and its connection, in the worker's process. Its methods raise InputError with FFmpeg's reason."""

    def __init__(self, url: str, width: int, height: int, fps: float, pixel_shape: Fraction) -> None:
        super().__init__(width, height, fps, pixel_shape)
        self._url, self._format, self._next_key = url, FORMATS[urlsplit(url).scheme.lower()], 0

    @refusing()
    def open(self) -> None:
        """Connects to the server."""
        import av

        container = av.open(self._url, "w", format=self._format, container_options=OPTIONS)
        self._start(container, ENCODER)
        container.start_encoding()

    @refusing()
    def write(self, image: np.ndarray, time_s: float) -> tuple[str, ...]:
        """Sends an (H, W, 3) uint8 RGB picture, and returns the changes to the pictures so far."""
        from av.video.frame import PictureType

        assert self._container and self._stream
        picture = self._picture(image, time_s)
        if self._last_tick >= self._next_key:
            picture.pict_type, self._next_key = PictureType.I, self._last_tick + KEY_TICKS
        self._container.mux(self._stream.encode(picture))
        return self.notes

    @refusing()
    def close(self) -> None:
        """Ends the stream."""
        assert self._container and self._stream
        self._container.mux(self._stream.encode())
        self._container.close()


_writers: list[StreamWriter] = []
"""The writer of this process."""


def _open(*arguments: Any) -> None:
    _writers.append(StreamWriter(*arguments))
    _writers[0].open()


def _write(image: np.ndarray, time_s: float) -> tuple[str, ...]:
    return _writers[0].write(image, time_s)


def _close() -> None:
    _writers[0].close()
