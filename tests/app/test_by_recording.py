"""Metrics by recording: which images count where, and the interval of two blocks in closed form; and how far the
expected accuracy is off."""

from dataclasses import replace

import numpy as np
import pytest

from steadyseg.app.evaluation.data import EvaluationFrames
from steadyseg.app.evaluation.evaluate_segmenter import ExpectedMetrics
from steadyseg.app.evaluation.recordings import RecordingMetrics, percent_with_interval
from steadyseg.core.classes import ClassList
from steadyseg.core.frame import Frame, Maps
from steadyseg.seg.evaluate import FrameMetrics

CLASSES = ClassList(("a", "b"), ((0, 0, 0), (9, 9, 9)), void=2)


def seen(right: float) -> tuple[Frame, Maps]:
    """A frame of class a whose first pixels, a share of `right`, are predicted rightly with a confidence of 0.75."""
    label = np.zeros((10, 10), np.uint8)
    a = np.where(np.arange(100).reshape(10, 10) < 100 * right, 0.75, 0.25).astype(np.float32)
    maps = Maps((a < 0.5).astype(np.uint8), *(np.zeros_like(label) for _ in range(3)), np.stack([a, 1 - a]))
    return Frame(np.zeros((10, 10, 3), np.uint8), 0, 0.0, label), maps


def test_the_expected_accuracy_is_compared_with_that_of_labelled_pixels() -> None:
    metrics = ExpectedMetrics(CLASSES.void_id)
    assert metrics.record() == {}
    for familiarity, expected in ((0.04, 0.9), (0.5, 0.75), (0.05, 0.825), (None, 0.1)):
        frame, maps = seen(0.8)
        metrics.update(frame, replace(maps, familiarity=familiarity, expected_accuracy=expected))
    metrics.update(replace(frame, label=np.full_like(frame.label, CLASSES.void_id)), replace(maps, familiarity=0.9))
    found = metrics.record()
    assert (found["novel_share"], found["familiarity_p50"]) == (pytest.approx(2 / 3), 0.05)
    assert found["expected_accuracy_gap"] == pytest.approx(0.025)  # of 0.1, -0.05 and 0.025
    assert found["expected_accuracy_error"] == pytest.approx(0.175 / 3)


def test_a_frame_of_another_size_starts_anew() -> None:
    """A stream of two picture sizes ended in an internal message."""
    metrics, (frame, maps) = FrameMetrics.of(CLASSES), seen(0.8)
    small = replace(frame, image=frame.image[:8], label=frame.label[:8])
    for index, (one, size) in enumerate(((frame, 10), (frame, 10), (small, 8), (small, 8))):
        metrics.update(replace(one, index=index), replace(maps, probs=maps.probs[:, :size]))
    assert metrics.result()["consistency_pairs"] == 2


def test_stretches_are_of_one_recording_and_drawn_as_a_whole() -> None:
    names = [f"one_{number:03d}" for number in range(20)] + ["all_f001", "all_f002"]
    metrics = RecordingMetrics(EvaluationFrames(names, "", iter(()), len(names)), CLASSES)
    for place in range(22):
        metrics.update(place, *seen(0.9 if place < 10 else 0.5 if place < 20 else 0.8))
    found = metrics.result()
    assert {name: row["stretches"] for name, row in found.items()} == {"one": 2, "all": 1, "all recordings": 3}
    # Two blocks of equal size: both drawn twice are 0.9 and 0.5, one time in four each.
    assert found["one"]["accuracy"] == pytest.approx((0.7, 0.5, 0.9))
    assert found["one"]["ece"] == pytest.approx((0.05, 0.05, 0.25))  # of both together; the second alone
    assert found["all"]["accuracy"] == (pytest.approx(0.8), None, None)  # it was said to lie in 0.8 to 0.8
    assert percent_with_interval(*found["all"]["accuracy"]) == "80.0 (one stretch)"
    assert found["all recordings"]["accuracy"][0] == pytest.approx((9 + 5 + 1.6) / 22)
