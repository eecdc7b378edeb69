"""How unsure a network usually is: whose frames count, and what is made of them."""

from typing import Any

import numpy as np
import pytest

from core.frame import Frame, Maps
from seg.novelty import mean_entropies, percentile


class Echo:
    """A segmenter whose entropy is the picture's own brightness."""

    def step(self, frame: Frame) -> Maps:
        shade = frame.image[..., 0]
        return Maps(shade, shade, shade, shade)


def frame(level: int, labelled: bool) -> Frame:
    image = np.full((4, 6, 3), level, np.uint8)
    return Frame(image, level, float(level), image[..., 0] if labelled else None)


def test_only_labelled_frames_count_as_shares_of_the_most() -> None:
    segmenter: Any = Echo()
    found = mean_entropies(segmenter, [frame(255, False), frame(51, True), frame(102, True)])
    assert found == pytest.approx([0.2, 0.4])


def test_one_in_twenty_is_unusual() -> None:
    assert percentile([index / 100 for index in range(101)]) == 0.95
