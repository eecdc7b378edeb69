"""Scene cuts: a frame whose picture shares no structure with the picture before starts the temporal mean anew.

A thumbnail of about 32x24 pixels keeps what stays from frame to frame of one scene. Its logarithm turns a change of
light into an offset. The mean around each pixel is subtracted, and tanh limits the weight of bright edges. The distance
of two frames is one minus the correlation of what remains. The numbers below were chosen on 30 simulated street drives.
There neighbouring frames are at most 0.34 apart, a frame and its copy three times as bright at most 0.43. Frames on the
two sides of a cut are at least 0.51 apart.
"""

from typing import TYPE_CHECKING, TypeVar

import numpy as np

if TYPE_CHECKING:
    from torch import Tensor

Structure = TypeVar("Structure", "Tensor", np.ndarray)

THUMBNAIL = (24, 32)
"""Rows and columns of the thumbnail, or a few more where they do not divide the picture."""
CUT = 0.47
"""Distance above which two frames are of two scenes."""
MAX_GAP = 5
"""Source frames between two frames that can be compared. A car at 50 km/h moves 2 m in that time (30 Hz). Further
apart, one scene can look like two, and the mean weighs the past less anyway."""
DARK_LEVELS = 8.0
"""Levels of 255 added before the logarithm, so that sensor noise in the dark is no structure."""
BOX = 5
"""Pixels a side of the mean that is subtracted."""
FLAT = 0.05
"""A picture has no structure if the deviation of its logarithm, or the mean square of its structure, is below this. It
is near to every other picture, so that a dark tunnel or a fade is no cut."""
NOISE = 1.5
"""Levels of 255. A picture whose thumbnail deviates less from the mean around each pixel shows noise alone and has no
structure, as behind a closed lens. Noise of 6 levels a pixel deviates by 0.3 to 1.2, drawn and real streets by 10."""


def thumbnail(levels: "Tensor") -> "Tensor":
    """(B, 3, h, w) levels 0..255 -> (B, rows, columns) mean levels, of whole pixels alone as graphs need it."""
    import torch.nn.functional as F

    rows, columns = (max(1, length // wanted) for length, wanted in zip(levels.shape[-2:], THUMBNAIL, strict=True))
    return F.avg_pool2d(levels.mean(1), (rows, columns))


def structure(thumbnail: "Tensor") -> "Tensor":
    """(B, rows, columns) mean levels 0..255 -> the structure of each picture, in -1..1."""
    import torch
    import torch.nn.functional as F

    levels = thumbnail + DARK_LEVELS
    shade = torch.log(levels)[:, None]
    padded = F.pad(shade, [BOX // 2] * 4, mode="replicate")
    detail = (shade - F.avg_pool2d(padded, BOX, stride=1))[:, 0]
    squares, of_levels = (one.square().mean((1, 2), keepdim=True) for one in (detail, detail * levels))
    return torch.where(of_levels > NOISE**2, torch.tanh(detail / (squares.sqrt() + FLAT)), 0.0)


def distance(before: Structure, now: Structure) -> Structure:
    """The distance of two structures (..., rows, columns): 0 of equal pictures, about 0.7 where they have nothing in
    common.

    Zeros, as before the first frame, are near to every structure.
    """
    both, first, second = ((a * b).mean((-2, -1)) for a, b in ((before, now), (before, before), (now, now)))
    return 1.0 - (both + FLAT) / ((first * second) ** 0.5 + FLAT)


def frame_structure(image: np.ndarray) -> np.ndarray:
    """(H, W, 3) uint8 RGB -> the structure of `structure`, computed without torch.

    Torch's threads wait in a loop after each operation and take the processor from the network. This costs 3 ms in a
    frame of 10 ms (two cores, OpenVINO). About five rows of the picture make a row of the thumbnail; reading all rows
    takes twice as long and finds the same.
    """
    import cv2

    rows = image[:: max(1, len(image) // (THUMBNAIL[0] * 5))]
    small = cv2.resize(rows, THUMBNAIL[::-1], interpolation=cv2.INTER_AREA)
    levels = small.mean(-1, dtype=np.float32) + np.float32(DARK_LEVELS)
    shade = np.log(levels)
    detail = shade - cv2.blur(shade, (BOX, BOX), borderType=cv2.BORDER_REPLICATE)
    if np.square(detail * levels).mean() <= NOISE**2:
        return np.zeros_like(detail)
    return np.tanh(detail / (np.sqrt(np.square(detail).mean()) + FLAT))


class CutDetector:
    """Finds the cuts of one stream; it remembers the structure of the last frame. Not thread-safe."""

    def __init__(self) -> None:
        self._last: np.ndarray | None = None

    def __call__(self, image: np.ndarray, gap: int) -> bool:
        """(H, W, 3) uint8 RGB -> True where a cut lies between the last call's frame and this one.

        `gap`: source frames since the last call. It is 0 for the first frame of a stream, which is no cut.
        """
        now = frame_structure(image)
        last, self._last = self._last, now
        return last is not None and 0 < gap <= MAX_GAP and bool(distance(last, now) > CUT)
