"""Decoding of a visitor's camera picture: a JPEG within limits, cut to one of five shapes."""

import math
import struct

import numpy as np

from steadyseg.app.opencv import opencv
from steadyseg.core.errors import InputError

MIN_SIDE, MAX_SIDE = 16, 1920
"""Limits of a picture's sides in pixels; the page sends 640 at most."""
SHAPES = ((16, 9), (4, 3), (1, 1), (3, 4), (9, 16))
"""Aspect ratios of cameras and phones. Each costs a compiled network (40 MB), so they are few."""
FRAME, PROGRESSIVE, SCAN = (0xC0, 0xC1), 0xC2, 0xDA
PASSED_OVER = (0xC4, 0xDB, 0xDD, *range(0xE0, 0xF0), 0xFE)
"""Markers that may precede the scan of a Huffman-coded sequential JPEG: tables, restart interval, application data,
comment."""
MAX_SEGMENTS = 100
"""Most segments before the scan; a browser writes 8 to 12."""


def camera_picture(data: bytes) -> np.ndarray:
    """Decodes a browser's JPEG to (H, W, 3) uint8 RGB, and cuts it to the nearest of `SHAPES`, which usual cameras have
    already.

    Size and kind are read before decoding. Raises InputError if either is not accepted.
    """
    width, height = read_header(data)
    if not (MIN_SIDE <= width <= MAX_SIDE and MIN_SIDE <= height <= MAX_SIDE):
        raise InputError(f"camera: pictures are {width}x{height}; expected {MIN_SIDE} to {MAX_SIDE} a side")
    cv2 = opencv()
    image = cv2.imdecode(np.frombuffer(data, np.uint8), cv2.IMREAD_COLOR_RGB | cv2.IMREAD_IGNORE_ORIENTATION)
    if image is None:
        raise InputError("camera: a picture that cannot be decoded")
    return cut(np.asarray(image))


def read_header(data: bytes) -> tuple[int, int]:
    """(width, height) of a JPEG for decoding in one pass: sequential, Huffman-coded, all colours in one scan.

    In a progressive JPEG each scan of a few bytes costs a pass over the whole picture: 71 kB took 3.5 s. Headers that
    libjpeg would skip or repair are refused, so that libjpeg cannot read other values. Raises InputError.
    """
    width = height = colors = 0
    place = 2 if data[:2] == b"\xff\xd8" else len(data)
    for _ in range(MAX_SEGMENTS):
        if place + 10 > len(data):
            break
        mark, kind, length = struct.unpack_from(">BBH", data, place)
        if mark == 0xFF and kind == PROGRESSIVE:
            raise InputError("camera: a progressive JPEG; expected a baseline one, as canvas.toBlob makes it")
        if mark == 0xFF and kind == SCAN and data[place + 4] == colors:
            return width, height
        if mark == 0xFF and kind in FRAME:
            height, width, colors = struct.unpack_from(">HHB", data, place + 5)
        elif mark != 0xFF or kind not in PASSED_OVER:
            break
        place += 2 + length
    raise InputError("camera: expected a JPEG picture, baseline and in one scan")


def cut(image: np.ndarray) -> np.ndarray:
    """The largest middle part of (H, W, 3) that has exactly the nearest of `SHAPES`."""
    height, width = image.shape[:2]
    across, down = min(SHAPES, key=lambda shape: abs(math.log(width / height * shape[1] / shape[0])))
    times = min(width // across, height // down)
    left, top = (width - times * across) // 2, (height - times * down) // 2
    return np.ascontiguousarray(image[top : top + times * down, left : left + times * across])
