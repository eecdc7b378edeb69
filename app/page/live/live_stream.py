"""One visitor's live stream: a camera picture in, two pictures and the facts about them out."""

import time
from dataclasses import dataclass
from typing import Any

import numpy as np

from steadyseg.app.page.parts.network_pool import Lease, NetworkPool, OpenMethod
from steadyseg.app.page.parts.pictures import jpeg, overlay_picture, second_picture
from steadyseg.app.page.parts.settings import MethodSettings, Settings
from steadyseg.app.video.verdict import CAVEAT, describe_frame
from steadyseg.core.errors import InputError
from steadyseg.core.frame import CLAIMS, Frame, Maps

RATE_HZ = 15.0
"""tau is in frames of this rate, and so are the gaps between camera pictures."""
PAUSE_S = 1.0
"""The stream restarts after this many seconds of silence, since the camera was switched off."""
UNSURE = 0.5
"""Below this confidence, all other classes together are likelier than the predicted class."""


@dataclass(frozen=True)
class LivePictures:
    """The answer to one camera frame."""

    left: bytes
    """The left picture as JPEG."""
    right: bytes
    """The right picture as JPEG."""
    facts: dict[str, Any]
    """JSON values about this frame; shares and probabilities are in 0..1."""


class LiveStream:
    """The temporal state of one visitor's camera. Not thread-safe."""

    def __init__(self, pool: NetworkPool) -> None:
        self._lease = Lease(pool)
        self._open: dict[MethodSettings, OpenMethod] = {}
        self._compares = False
        self._labels: dict[MethodSettings, np.ndarray] = {}
        self._index, self._time_s = -1, -np.inf

    def step(self, image: np.ndarray, settings: Settings, time_s: float) -> LivePictures:
        """Segments one camera picture, (H, W, 3) uint8 RGB, taken at `time_s` of the camera's clock.

        Raises InputError for a method that the model cannot run; the stream goes on with the next frame.
        """
        frame, began_s = self._numbered(image, time_s), time.perf_counter()
        if self._compares != (settings.against is not None):  # two methods share a network, and no thread of its own
            self.close()
        self._compares = settings.against is not None
        self._close_all_but(settings.methods)
        needs_probs = settings.watch is not None or (settings.view.second == "set-size" and settings.against is None)
        is_first = any(method not in self._open for method in settings.methods)
        results = [self._segment(frame, method, needs_probs) for method in settings.methods]
        flicker = [self._flicker(method, maps) for method, (_, maps) in zip(settings.methods, results, strict=True)]
        changes = [changed if settings.view.mark_changes else None for changed, _ in flicker]
        stepped_s = time.perf_counter()
        opened, maps = results[-1]
        classes = opened.meta.classes
        left = overlay_picture(frame, results[0][1], classes, settings.view, changes[0])
        note = None
        if settings.against is not None:
            right = overlay_picture(frame, maps, classes, settings.view, changes[-1])
        else:
            try:
                right = second_picture(maps, settings.view.second, opened.meta, opened.segmenter.method)
            except InputError as error:
                right, note = second_picture(maps, "uncertainty", opened.meta, opened.segmenter.method), str(error)
        facts = {
            **describe_maps(maps, len(classes)),
            "flicker": [share for _, share in flicker],
            "probs": [at_pixel(maps, settings.watch) for _, maps in results] if settings.watch else None,
            "verdict": frame_verdict(maps, opened.segmenter.training_data),
            "note": note,
            "opened": is_first,  # then `step_ms` includes compiling the network
            "backend": opened.segmenter.backend,
            "network_frames": opened.segmenter.network_frames,
            "step_ms": round((stepped_s - began_s) * 1e3, 1),
        }
        return LivePictures(jpeg(left), jpeg(right), facts)

    def close(self) -> None:
        """Releases the networks and their state."""
        self._close_all_but(())

    def _segment(self, frame: Frame, method: MethodSettings, keep_probs: bool) -> tuple[OpenMethod, Maps]:
        opened = self._open.get(method)
        if opened is None:
            opened = self._open[method] = OpenMethod(method, self._lease, live=not self._compares)
        return opened, opened.step(frame, keep_probs)

    def _close_all_but(self, methods: tuple[MethodSettings, ...]) -> None:
        for method in self._open.keys() - set(methods):
            self._open.pop(method).close()
            self._labels.pop(method, None)

    def _numbered(self, image: np.ndarray, time_s: float) -> Frame:
        """The picture as a frame. Its index grows by the number of frames since the previous picture; a long pause
        restarts the stream."""
        elapsed_s = time_s - self._time_s
        fresh = not 0 <= elapsed_s <= PAUSE_S
        self._index += 1 if fresh else max(1, round(elapsed_s * RATE_HZ))
        self._time_s = time_s
        if fresh:
            self._labels.clear()
        return Frame(image, self._index, time_s, discontinuity=fresh)

    def _flicker(self, method: MethodSettings, maps: Maps) -> tuple[np.ndarray | None, float | None]:
        """((H, W) bool: pixels whose label changed since the previous frame, their share); None for a first frame."""
        before, self._labels[method] = self._labels.get(method), maps.label
        if before is None or before.shape != maps.label.shape:
            return None, None
        changed = before != maps.label
        return changed, round(float(np.count_nonzero(changed)) / changed.size, 5)


def frame_verdict(maps: Maps, data: str) -> dict[str, Any]:
    """The verdict on the labels of a frame, in words. `data`: name of the training data."""
    caveat = CAVEAT if maps.verdict in CLAIMS else ""
    return {
        "level": maps.verdict,
        "words": describe_frame(maps, data),
        "caveat": caveat,
        "familiarity": maps.familiarity,
    }


def describe_maps(maps: Maps, num_classes: int) -> dict[str, Any]:
    """Mean confidence, share of uncertain pixels, and share of each class."""
    height, width = maps.label.shape
    counts = np.bincount(maps.label.ravel(), minlength=num_classes)
    return {
        "width": width,
        "height": height,
        "confidence": round(float(maps.confidence.mean()) / 255, 4),
        "unsure": round(float(np.count_nonzero(maps.confidence < UNSURE * 255)) / maps.label.size, 4),
        "shares": [round(float(count) / maps.label.size, 4) for count in counts[:num_classes]],
    }


def at_pixel(maps: Maps, place: tuple[float, float]) -> list[float]:
    """The class distribution at (x, y), given as shares of width and height of the network's output."""
    assert maps.probs is not None
    _, height, width = maps.probs.shape
    x, y = (min(int(share * size), size - 1) for share, size in zip(place, (width, height), strict=True))
    return [round(float(value), 4) for value in maps.probs[:, y, x]]
