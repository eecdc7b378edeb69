"""Metrics computed from counts: a confusion matrix (K, K) [true, predicted], and bins of confidence."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from steadyseg.core.errors import InputError

FINE_BINS = 30
"""Number of bins of confidence that are kept. Merged by threes they make 10 bins, by twos 15, for both ECEs."""

REFERENCE_EPSILON = 1e-7
"""The code of the published ECE values adds this to the bin counts."""


def accuracy_of(confusion: np.ndarray) -> float | None:
    total = int(confusion.sum())
    return int(confusion.trace()) / total if total else None


def class_iou(confusion: np.ndarray, shared: Sequence[bool] | None = None) -> list[float | None]:
    """Intersection over union per class; None where the class is absent from the labels, or `shared`: a label allows it
    beside other classes."""
    hit, present, predicted = confusion.diagonal(), confusion.sum(1), confusion.sum(0)
    union = present + predicted - hit
    known = present > 0 if shared is None else (present > 0) & ~np.array(shared)
    return [
        float(right / either) if is_known else None for right, either, is_known in zip(hit, union, known, strict=True)
    ]


def mean_of_known(values: list[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else None


def at_cutoff(confusion: np.ndarray, percent: str, shared: Sequence[bool] | None = None) -> dict[str, float | None]:
    """Metrics of the certain samples, confusion[1], and of the uncertain samples, confusion[0]."""
    uncertain_wrong, certain_wrong = (int(part.sum() - part.trace()) for part in confusion)
    wrong = uncertain_wrong + certain_wrong
    return {
        f"acc_{percent}": accuracy_of(confusion[1]),
        f"iou_{percent}": mean_of_known(class_iou(confusion[1], shared)),
        f"unc_{percent}": uncertain_wrong / wrong if wrong else None,
        f"freq_{percent}": int(confusion[1].sum()) / int(confusion.sum()),
    }


def calibration_of(bins: np.ndarray) -> dict[str, Any]:
    count, correct, confidence, _ = _merge_bins(bins, 10)
    return {
        "ece": _ece(bins, 10),
        "ece_15": _ece(bins, 15),
        "ece_signed": float((confidence - correct).sum() / count.sum()),
        "ece_reference": reference_ece(bins),
        "reliability": [
            {
                "lower": i / 10,
                "upper": (i + 1) / 10,
                "count": int(count[i]),
                "accuracy": float(correct[i] / count[i]) if count[i] else None,
                "confidence": float(confidence[i] / count[i]) if count[i] else None,
            }
            for i in range(10)
        ],
    }


def _merge_bins(bins: np.ndarray, groups: int) -> np.ndarray:
    """(4, 30) fine bins -> (4, groups)."""
    return bins.reshape(4, groups, -1).sum(2)


def _ece(bins: np.ndarray, groups: int) -> float:
    """Sum over bins of (count / total) * |accuracy - confidence|, in which the counts cancel."""
    count, correct, confidence, _ = _merge_bins(bins, groups)
    return float(np.abs(correct - confidence).sum() / count.sum())


def reference_ece(bins: np.ndarray) -> float:
    """The ECE of the published code, for comparison with published numbers only.

    Count and accuracy take (a, b], the summed confidence takes [a, b). So a confidence on an edge is summed one bin
    higher than counted, and a confidence of exactly 1 is not summed. Saturated samples thus look less confident than
    they are.
    """
    count, correct, confidence, _ = _merge_bins(bins, 10)
    on_upper_edge = bins[3, 2::3]  # (10,) the fine edges that are tenths
    on_lower_edge = np.append(0.0, on_upper_edge[:-1])
    mean_confidence = (confidence - on_upper_edge + on_lower_edge) / (count + REFERENCE_EPSILON)
    gap = np.abs(correct / np.maximum(count, 1.0) - mean_confidence)
    return float((count * gap).sum() / count.sum())


def unknown_ids(ids: list[int], num_classes: int, void: int | None) -> InputError:
    """The error of label ids that are neither a class nor void."""
    shown = ", ".join(map(str, ids[:10])) + (", ..." if len(ids) > 10 else "")
    allowed = f"in 0..{num_classes - 1} or be void ({void})"
    return InputError(f"label ids must lie {allowed}, got {shown}: map them to classes or give their void id")
