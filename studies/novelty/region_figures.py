"""Figures of scores that should find pixels and regions: AP, FPR at 95 %, and SegmentMeIfYouCan's F1 of components."""

import numpy as np
import torch
from torch import Tensor

OVERLAPS = np.linspace(0.25, 0.75, 11)
"""Overlaps at which a region counts as found; F1 is the mean over them (Chan et al. 2021, arXiv 2104.14812)."""
SMALLEST = 8
"""Pixels of a region, at stride 4: 128 of the picture."""


def average_precision(scores: Tensor, truth: Tensor) -> float:
    """Area under precision over recall by steps, as scikit-learn's."""
    order = scores.argsort(descending=True)
    hits = truth[order].double()
    precision = hits.cumsum(0) / torch.arange(1, len(hits) + 1)
    return float((precision * hits).sum() / hits.sum())


def fpr_at_95(inside: Tensor, outside: Tensor) -> float:
    """Share of ordinary pixels above the score that 95 % of the object's pixels exceed."""
    return float((inside >= np.quantile(outside.numpy(), 0.05)).double().mean())


def best_threshold(scores: Tensor, truth: Tensor) -> float:
    """The threshold of the highest F1 of pixels."""
    order = scores.argsort(descending=True)
    hits = truth[order].double().cumsum(0)
    f1 = 2 * hits / (torch.arange(1, len(hits) + 1) + hits[-1])
    return float(scores[order[f1.argmax()]])


def regions(found: np.ndarray) -> tuple[int, np.ndarray]:
    """(h, w) bool -> the number of its connected regions of `SMALLEST` pixels or more, and (h, w) of their numbers from
    1, 0 elsewhere."""
    import cv2

    count, places, figures, _ = cv2.connectedComponentsWithStats(found.astype(np.uint8))
    numbers = np.zeros(count, np.int64)
    large = [n for n in range(1, count) if figures[n, cv2.CC_STAT_AREA] >= SMALLEST]
    numbers[large] = np.arange(1, len(large) + 1)
    return len(large), numbers[places]


def overlaps(found: np.ndarray, truth: np.ndarray) -> tuple[list[float], list[float]]:
    """(h, w) bool each -> the adjusted IoU of every true region, and the precision of every found one."""
    true_count, true_places = regions(truth)
    found_count, found_places = regions(found)
    ious = []
    for number in range(1, true_count + 1):
        own = true_places == number
        touching = np.isin(found_places, np.setdiff1d(found_places[own], 0))
        whole = (own | touching) & ~(touching & (true_places > 0) & ~own)
        ious.append(float((own & touching).sum() / whole.sum()))
    precisions = [float(truth[found_places == number].mean()) for number in range(1, found_count + 1)]
    return ious, precisions


def component_f1(ious: list[float], precisions: list[float]) -> float:
    """Mean over `OVERLAPS` of 2 TP / (2 TP + FN + FP)."""
    iou, precision = np.array(ious), np.array(precisions)
    shares = []
    for least in OVERLAPS:
        hits = int((iou > least).sum())
        shares.append(2 * hits / (hits + len(iou) + int((precision <= least).sum())))
    return float(np.mean(shares))
