"""A browser's camera, frame by frame: pictures in, the two pictures and a status line out."""

import base64
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from app.opencv import opencv
from app.page_settings import Settings
from app.render import render
from app.source_info import check_size
from core.frame import Frame, Maps
from core.segmenter import Segmenter

RATE_HZ = 15.0
"""How often the browser is asked for a frame; the temporal weights count frames of this rate."""
PAUSE_S = 1.0
"""A camera that is silent for longer was switched off: the stream starts anew, and nothing counts as dropped."""
UNSURE = 0.5
"""Below this confidence all other classes together are likelier than the shown one."""
JPEG_QUALITY = 85


@dataclass(frozen=True)
class LivePictures:
    """What one camera frame becomes on the page."""

    overlay: str
    """Data URL of a JPEG."""
    uncertainty: str
    """Data URL of a JPEG."""
    status: str


class LiveStream:
    """The temporal state of one visitor's camera.

    The browser sends a frame every 1 / RATE_HZ seconds, and Gradio keeps the newest one that was not looked at yet
    (`/stream/{event_id}` overwrites it), so that what is shown is at most one look and one frame old. The frames
    between two looks are the gap in the index: they decay the temporal state and are counted as dropped.
    """

    def __init__(self, clock: Callable[[], float] = time.perf_counter) -> None:
        self._clock = clock
        self._settings: Settings | None = None
        self._segmenter: Segmenter | None = None
        self._began_s = self._finished_s = -np.inf
        self._index = -1
        self.dropped = self.frames = 0
        self._times_s: deque[float] = deque(maxlen=20)

    def step(self, image: np.ndarray, settings: Settings) -> LivePictures:
        """One camera picture, (H, W, 3) uint8 RGB. Raises InputError for pictures larger than any camera's."""
        check_size("camera", image.shape[1], image.shape[0])
        frame = self._numbered(image.copy())  # Gradio's is read-only, which torch warns about
        segmenter = self._segmenter_for(settings)
        maps = segmenter.step(frame)
        overlay = data_url(render(frame, maps, "overlay", segmenter.classes))
        uncertainty = data_url(render(frame, maps, "uncertainty", segmenter.classes))
        self._finished_s = self._clock()
        self._times_s.append(self._finished_s)
        return LivePictures(overlay, uncertainty, self._status(maps))

    def close(self) -> None:
        """Lets go of the network and its state."""
        self._segmenter = self._settings = None

    def _segmenter_for(self, settings: Settings) -> Segmenter:
        if self._segmenter is None or settings != self._settings:
            self._segmenter, self._settings = settings.open_segmenter(), settings
        return self._segmenter

    def _numbered(self, image: np.ndarray) -> Frame:
        """The arrival time decides the index; two frames of one interval follow each other."""
        now_s = self._clock()
        fresh = now_s - self._finished_s > PAUSE_S
        index = self._index + 1
        if fresh:
            self._began_s = now_s - index / RATE_HZ
            self._times_s.clear()
        else:
            index = max(index, round((now_s - self._began_s) * RATE_HZ))
            self.dropped += index - self._index - 1
        self._index = index
        self.frames += 1
        return Frame(image, index, now_s - self._began_s, discontinuity=fresh)

    def _status(self, maps: Maps) -> str:
        unsure = float((maps.confidence < UNSURE * 255).mean())
        return (
            f"{self._rate():.1f} frames/s · {self.dropped} of {self.frames + self.dropped} dropped · "
            f"mean confidence {maps.confidence.mean() / 255:.2f} · {unsure:.0%} of pixels uncertain"
        )

    def _rate(self) -> float:
        times = self._times_s
        return (len(times) - 1) / (times[-1] - times[0]) if len(times) > 1 else 0.0


def data_url(image: np.ndarray) -> str:
    """An (H, W, 3) uint8 RGB picture as a JPEG inside its own address: nothing is written to disk."""
    cv2 = opencv()
    _, data = cv2.imencode(".jpg", image[..., ::-1], [cv2.IMWRITE_JPEG_QUALITY, JPEG_QUALITY])
    return "data:image/jpeg;base64," + base64.b64encode(data).decode("ascii")
