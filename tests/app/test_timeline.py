"""The strip of time: its points over a stream of any length."""

from collections import Counter
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from steadyseg.app.page.file.timeline import MAX_POINTS, Timeline
from steadyseg.app.video.report import FrameFigures


def figures(index: int, novelty: float, accuracy: float) -> FrameFigures:
    return FrameFigures(
        index, index / 10, accuracy, 0.1, 0.1, np.zeros(2), novelty, accuracy, 3.0 if index > 9_990 else None, 1.0
    )


def test_a_long_stream_keeps_its_worst_frames_and_its_cut() -> None:
    segmenter: Any = SimpleNamespace(resets=Counter())
    timeline = Timeline(segmenter)
    for index in range(10_001):
        segmenter.resets["cut"] += index == 7_003
        timeline.add(figures(index, 0.01 if index == 1_234 else 0.6, 0.5 if index == 9_876 else 0.9))
    points = timeline._points
    assert MAX_POINTS / 2 <= len(points) <= MAX_POINTS
    assert [one.time_s for one in points] == pytest.approx([3.2 * number for number in range(len(points))])
    assert [number for number, one in enumerate(points) if one.familiarity == 0.01] == [1_234 // 32]
    assert [number for number, one in enumerate(points) if one.accuracy == 0.5] == [9_876 // 32]
    assert [number for number, one in enumerate(points) if one.cut] == [7_003 // 32]
    drawn = timeline.html()
    assert (drawn.count("class='novel'"), drawn.count("class='alarm'")) == (2, 2), "one in each lane"
