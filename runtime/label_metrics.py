"""Metrics of labelled frames in one pass over the pixels, without torch; `core.evaluation.metrics` has more metrics."""

import functools
import math
from typing import Any

import numpy as np
from numba import types

from steadyseg.core.classes import ClassList
from steadyseg.core.evaluation import figures
from steadyseg.core.frame import Frame, Maps
from steadyseg.runtime.kernels.update import compile_kernel

EDGES = (np.arange(1, figures.FINE_BINS + 1) / figures.FINE_BINS).astype(np.float32)
"""Upper edges of the bins of confidence, as `StreamingMetrics` has them."""


class LabelMetrics:
    """Sums over the labelled frames of a stream."""

    def __init__(self, classes: ClassList) -> None:
        self.void, count = classes.void_id, len(classes)
        self.frames = 0
        self._confusion, self._bins = np.zeros((count, count), np.int64), np.zeros((4, figures.FINE_BINS))
        self._scores = np.zeros(2)  # NLL, Brier
        self._pairs, self._known_pairs = np.zeros(3), np.zeros(2)  # number and sums of shares
        self._last, self._before = -2, (np.empty(0), np.empty(0))

    def update(self, frame: Frame, maps: Maps) -> None:
        """Adds a labelled frame. Raises InputError for an id that is neither a class nor void."""
        import cv2

        assert frame.label is not None and maps.probs is not None
        label, void = np.ascontiguousarray(frame.label), self.void
        found = np.flatnonzero(np.bincount(label.ravel(), minlength=256))
        if unknown := [int(one) for one in found if one != void and one >= len(self._confusion)]:
            raise figures.unknown_ids(unknown, len(self._confusion), void)
        predicted = np.empty_like(label)
        height, width = label.shape
        planes = [cv2.resize(plane, (width, height), interpolation=cv2.INTER_LINEAR) for plane in maps.probs]
        _kernel()(np.stack(planes), label, void, self._confusion, self._bins, self._scores, predicted)
        if frame.index == self._last + 1 and not frame.discontinuity and label.shape == self._before[0].shape:
            self._add_pair(predicted, label)
        self.frames += 1
        self._last, self._before = frame.index, (predicted, label)

    def _add_pair(self, predicted: np.ndarray, label: np.ndarray) -> None:
        before, known = self._before, label != self.void
        if not known.any():
            return
        steady, stays = ((now == then)[known] for now, then in zip((predicted, label), before, strict=True))
        self._pairs += 1, steady.mean(), stays.mean()
        if (both := (before[1] != self.void)[known]).any():
            self._known_pairs += 1, (steady == stays)[both].mean()

    @property
    def measurable(self) -> bool:
        """True if a labelled pixel that is not void was seen, so that there is a result."""
        return bool(self._confusion.any())

    def result(self) -> dict[str, Any]:
        """Metrics as in `StreamingMetrics.result`; needs a labelled pixel."""
        nll, brier = (float(score) for score in self._scores / self._confusion.sum())
        iou = figures.class_iou(self._confusion)
        (pairs, steady, stays), (known_pairs, agreed) = self._pairs.tolist(), self._known_pairs.tolist()
        return {
            "nll": nll,
            "accuracy": figures.accuracy_of(self._confusion),
            "miou": figures.mean_of_known(iou),
            "iou": iou,
            **figures.calibration_of(self._bins),
            "brier": brier,
            "consistency": steady / pairs if pairs else None,
            "label_consistency": stays / pairs if pairs else None,
            "change_agreement": agreed / known_pairs if known_pairs else None,
        }


def _count(probs: Any, label: Any, void: Any, confusion: Any, bins: Any, scores: Any, predicted: Any) -> None:
    """Adds the pixels that are not void to the sums, and writes the arg-max of all pixels."""
    edges = EDGES
    classes, height, width = probs.shape
    for y in range(height):
        for x in range(width):
            best, confidence, squares = 0, np.float32(-1.0), 0.0
            for k in range(classes):
                p = probs[k, y, x]
                squares += float(p) * float(p)
                if p > confidence:
                    best, confidence = k, p
            predicted[y, x] = best
            true = label[y, x]
            if true == void:
                continue
            place = np.searchsorted(edges[:-1], confidence)
            confusion[true, best] += 1
            bins[0, place] += 1.0
            bins[1, place] += 1.0 if true == best else 0.0
            bins[2, place] += confidence
            bins[3, place] += confidence if confidence >= edges[place] else 0.0
            p_true = float(probs[true, y, x])
            scores[0] -= math.log(max(p_true, 1e-12))
            scores[1] += (1.0 - p_true) ** 2 + squares - p_true * p_true


@functools.cache
def _kernel() -> Any:
    shared = functools.partial(types.Array, layout="C", readonly=True)
    sums = types.Array(types.int64, 2, "C"), types.Array(types.float64, 2, "C"), types.Array(types.float64, 1, "C")
    given = shared(types.float32, 3), shared(types.uint8, 2), types.int64
    return compile_kernel(_count, (*given, *sums, types.Array(types.uint8, 2, "C")))
