"""Frames of a file between two network calls, seen from both sides: their maps are carried from the call before and
from the call after, and averaged.

A file is no stream, so its reader may look ahead: a frame waits for the next call. The mean is geometric, weighted by
the distance to both calls (docs/records/results).
"""

import contextlib
import dataclasses
from collections.abc import Iterable, Iterator

import numpy as np

from steadyseg.core.frame import Frame, Maps
from steadyseg.core.method import SMALLEST_PROB
from steadyseg.core.motion import MotionEstimator, compose, inside, no_motion
from steadyseg.core.segmenter import Segmenter, segment
from steadyseg.runtime.cpu_backend import resize_map
from steadyseg.runtime.kernels.carried import CarriedMaps

Seen = tuple[Frame, Maps]
MOST = 8
"""Frames that wait at most, as each holds its picture; earlier ones keep the maps of one side."""


def segment_file(frames: Iterable[Frame], segmenter: Segmenter) -> Iterator[Seen]:
    """`segment` for the frames of a file: the same, where the network runs on every frame."""
    return segment(frames, segmenter) if segmenter.every in (1, "live") else _both_ways(frames, segmenter)


def _both_ways(frames: Iterable[Frame], segmenter: Segmenter) -> Iterator[Seen]:
    segmenter.keep_probs = True
    before, waiting = -1, list[Seen]()
    with contextlib.closing(segment(frames, segmenter)) as stream:
        for frame, maps in stream:
            if not maps.network:
                waiting.append((frame, maps))
                if len(waiting) > MOST:
                    yield waiting.pop(0)
                continue
            if waiting and maps.finite and not (maps.cut or frame.discontinuity):
                with segmenter.clock.measure("look back"):
                    waiting = _looked_back(waiting, before, (frame, maps), segmenter.head_stride)
            yield from waiting
            before, waiting = frame.index, []
            yield frame, maps
    yield from waiting


def _looked_back(waiting: list[Seen], before: int, call: Seen, stride: int) -> list[Seen]:
    """The frames since the call at index `before`, with the maps of both calls."""
    frame, maps = call
    assert maps.probs is not None
    size, estimate, motion, found = maps.probs.shape[1:], MotionEstimator(fine=True), None, list[Seen]()
    later = CarriedMaps(maps.probs, np.zeros(size, np.uint8), stride)
    estimate(frame.image, size)
    for earlier, its in reversed(waiting):
        step = estimate(earlier.image, size)
        if step is None or its.probs is None:
            return waiting
        motion = compose(motion, dataclasses.replace(step, trust=step.trust * inside(step.source)))
        later(motion, keep_probs=True)
        share = (earlier.index - before) / (frame.index - before)
        found.append((earlier, _mean(its, later.probs, share, stride)))
    return found[::-1]


def _mean(maps: Maps, later: np.ndarray, share: float, stride: int) -> Maps:
    """The maps of the call before, averaged with the probabilities (K, h, w) of the call after, which weigh `share`."""
    import cv2

    assert maps.probs is not None
    classes, *size = later.shape
    logs = [cv2.log(np.maximum(probs, SMALLEST_PROB).reshape(classes, -1)) for probs in (maps.probs, later)]
    mean = cv2.exp(cv2.addWeighted(logs[0], 1 - share, logs[1], share, 0))
    mean = (mean / mean.sum(0)).reshape(later.shape)
    still = no_motion((size[0], size[1]))
    fine = CarriedMaps(mean, np.zeros(size, np.uint8), stride)(still)
    label, confidence, entropy = (
        resize_map(values, maps.label.shape, is_label=values is fine.label) for values in fine[:3]
    )
    return dataclasses.replace(maps, label=label, confidence=confidence, entropy=entropy, probs=mean)
