"""A camera of this machine or a network stream: frames as they come, and reconnection after an interruption."""

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, NamedTuple, Protocol

import numpy as np

from steadyseg.app.opencv import opencv
from steadyseg.app.sources.source import Source, SourceInfo, check_size
from steadyseg.app.sources.times import FrameClock
from steadyseg.core.errors import InputError
from steadyseg.core.frame import Frame
from steadyseg.core.system.machine import trim_memory

if TYPE_CHECKING:
    import cv2

CAMERA_FPS = 30.0
"""Frame rate assumed if the driver does not report one."""
ATTEMPTS = 8
FIRST_DELAY_S, LONGEST_DELAY_S = 0.5, 15.0
"""Waits between attempts, doubled after each failure: 60 s in all, about as long as a camera needs to restart."""


class Picture(NamedTuple):
    """One picture of a connection with its own time stamp."""

    image: np.ndarray
    """(H, W, 3) uint8 RGB."""
    stamp_s: float | None


class Wanted(NamedTuple):
    """The size, rate and format that a camera is asked for; its driver may choose others."""

    width: int | None = None
    height: int | None = None
    fps: int | None = None
    format: str = ""
    """The code of a pixel format in four letters, such as MJPG; empty for the driver's choice."""


class Connection(Protocol):
    """One opened camera or stream that has delivered a picture; its pictures end with the connection."""

    info: SourceInfo

    def pictures(self) -> Iterator[Picture]: ...

    def close(self) -> None: ...


Connect = Callable[[Counter[str], threading.Event], Connection]
"""Opens a connection that counts its losses in the given counter and ends when stopped. InputError on failure."""


class LiveSource(Source):
    """A source that reconnects. Raises InputError if the first attempt fails, or if later `attempts` attempts in a row
    fail."""

    def __init__(self, connect: Connect, attempts: int = ATTEMPTS, first_delay_s: float = FIRST_DELAY_S) -> None:
        self.losses: Counter[str] = Counter()
        self._connect = connect
        self._attempts = attempts
        self._first_delay_s = first_delay_s
        self._stopped = threading.Event()
        self._begun = False
        self._connection = connect(self.losses, self._stopped)
        self.info = self._connection.info

    def __iter__(self) -> Iterator[Frame]:
        if self._begun:
            raise RuntimeError(f"{self.info.name} is being read already; open it again")
        self._begun = True
        return self._read()

    def stop(self) -> None:
        self._stopped.set()

    def __exit__(self, *_: object) -> None:
        self._connection.close()

    def _read(self) -> Iterator[Frame]:
        clock = FrameClock(1 / self.info.fps, self.losses)
        shape = (self.info.height, self.info.width)
        began_s = time.monotonic()
        index, fresh = 0, True
        while not self._stopped.is_set():
            for image, stamp_s in self._connection.pictures():
                resized, shape = image.shape[:2] != shape, image.shape[:2]
                self.losses["size_change"] += resized
                yield Frame(image, index, clock(stamp_s), discontinuity=fresh or resized)
                index, fresh = index + 1, False
            if self._reconnect():
                clock.restart(time.monotonic() - began_s)
                fresh = True

    def _reconnect(self) -> bool:
        """Returns True once a picture is there again, False if stopped. Raises InputError after the last attempt."""
        self._connection.close()
        for attempt in range(self._attempts):
            if self._stopped.wait(min(self._first_delay_s * 2**attempt, LONGEST_DELAY_S)):
                return False
            try:
                self._connection = self._connect(self.losses, self._stopped)
            except InputError as error:
                reason = error
            else:
                self.losses["reconnect"] += 1
                # Frees memory of the decoder's ended threads; without this, 12 reconnections kept 290 MB.
                trim_memory()
                return True
        raise InputError(f"{self.info.name}: lost, and gone after {self._attempts} attempts to reconnect ({reason})")


class CameraConnection:
    """A camera of this machine, by number or device path, through OpenCV. Raises InputError if it does not open or
    gives no picture."""

    def __init__(self, device: int | str, losses: Counter[str], stopped: threading.Event, wanted: Wanted) -> None:
        self._losses, self._stopped = losses, stopped
        name, cv2 = f"camera {device}", opencv()
        self._capture = _open(device)
        for what, value in (
            (cv2.CAP_PROP_FOURCC, wanted.format and cv2.VideoWriter.fourcc(*wanted.format)),  # decides which sizes fit
            (cv2.CAP_PROP_FRAME_WIDTH, wanted.width),
            (cv2.CAP_PROP_FRAME_HEIGHT, wanted.height),
            (cv2.CAP_PROP_FPS, wanted.fps),
        ):
            if value:
                self._capture.set(what, value)
        seen, image = self._capture.read()
        if not seen:
            self.close()
            raise InputError(
                f"{name}: does not open or gives no picture; is it connected, free and allowed? Or give a video file"
            )
        height, width = image.shape[:2]
        check_size(name, width, height)
        fps = self._capture.get(cv2.CAP_PROP_FPS)
        code = int(self._capture.get(cv2.CAP_PROP_FOURCC)).to_bytes(8, "little", signed=True)[:4]
        given = f"the driver gives {width}x{height}, {fps:g} frames/s, {code.decode('ascii', 'replace').strip(chr(0))}"
        notes = (given,) if any(wanted) else ()
        fps = fps if 0 < fps <= 1000 else CAMERA_FPS
        self.info = SourceInfo(name, width, height, fps, length=None, live=True, notes=notes)

    def pictures(self) -> Iterator[Picture]:
        """Pictures until the camera is gone, stamped on arrival: drivers' stamps differ in origin and unit."""
        cv2 = opencv()
        while not self._stopped.is_set():
            seen, image = self._capture.read()
            if not seen:
                self._losses["read_error"] += 1
                return
            yield Picture(cv2.cvtColor(image, cv2.COLOR_BGR2RGB), time.monotonic())

    def close(self) -> None:
        self._capture.release()


def _open(device: int | str) -> "cv2.VideoCapture":
    """Opens the camera without OpenCV's own warnings, since the one line of the InputError says more."""
    cv2 = opencv()
    log = cv2.utils.logging
    level = log.getLogLevel()
    log.setLogLevel(log.LOG_LEVEL_SILENT)
    try:
        return cv2.VideoCapture(device)
    finally:
        log.setLogLevel(level)
