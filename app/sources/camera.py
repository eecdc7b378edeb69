"""A camera of this machine, by number or device path, through OpenCV."""

import threading
import time
from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING

from app.opencv import opencv
from app.sources.live import Picture
from app.sources.source import SourceInfo, check_size
from core.errors import InputError

if TYPE_CHECKING:
    import cv2

CAMERA_FPS = 30.0
"""Frame rate assumed if the driver does not report one."""


class CameraConnection:
    """An opened camera. Raises InputError if it does not open or gives no picture."""

    def __init__(self, device: int | str, losses: Counter[str], stopped: threading.Event) -> None:
        self._losses, self._stopped = losses, stopped
        name = f"camera {device}"
        self._capture = _open(device)
        seen, image = self._capture.read()
        if not seen:
            self.close()
            raise InputError(
                f"{name}: does not open or gives no picture; is it connected, free and allowed? Or give a video file"
            )
        height, width = image.shape[:2]
        check_size(name, width, height)
        fps = self._capture.get(opencv().CAP_PROP_FPS)
        self.info = SourceInfo(name, width, height, fps if 0 < fps <= 1000 else CAMERA_FPS, length=None, live=True)

    def pictures(self) -> Iterator[Picture]:
        """Pictures stamped on arrival, since the drivers' own time stamps differ in origin and unit. Ends when the
        camera is gone."""
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
