"""Regions found in a picture against those that are there, by SegmentMeIfYouCan's definitions."""

import numpy as np
import pytest

from steadyseg.studies.novelty.region_figures import component_f1, overlaps


def picture(*boxes: tuple[int, int, int, int]) -> np.ndarray:
    shown = np.zeros((40, 60), bool)
    for top, bottom, left, right in boxes:
        shown[top:bottom, left:right] = True
    return shown


def test_an_object_found_by_half_beside_a_false_region() -> None:
    truth = picture((0, 10, 0, 10), (20, 30, 0, 10))
    found = picture((0, 10, 0, 5), (0, 10, 40, 50))
    ious, precisions = overlaps(found, truth)
    assert ious == [0.5, 0.0] and precisions == [1.0, 0.0]
    hits = [overlap < 0.5 for overlap in np.linspace(0.25, 0.75, 11)]  # TP 1, FN 1, FP 1 there; TP 0, FN 2, FP 1 beyond
    assert component_f1(ious, precisions) == pytest.approx(np.mean([0.5 if hit else 0.0 for hit in hits]))


def test_one_region_over_two_objects_counts_the_other_object_for_neither() -> None:
    truth = picture((0, 10, 0, 10), (0, 10, 12, 22))
    ious, precisions = overlaps(picture((0, 10, 0, 22)), truth)
    assert ious == [pytest.approx(100 / 120)] * 2 and precisions == [pytest.approx(200 / 220)]


def test_specks_are_no_regions() -> None:
    assert overlaps(picture((5, 7, 5, 8)), picture((20, 30, 0, 10))) == ([0.0], [])
