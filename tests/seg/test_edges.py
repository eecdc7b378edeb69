"""Figures on label edges and away from them, against masks drawn by hand."""

import numpy as np
import pytest
import torch

from steadyseg.core.classes import ClassList
from steadyseg.core.evaluation.metrics import StreamingMetrics
from steadyseg.core.frame import Frame, Maps
from steadyseg.seg.evaluate import EDGE_KEYS, EdgeMetrics, label_edges

CLASSES = ClassList(("a", "b", "c"), ((0, 0, 0), (1, 1, 1), (2, 2, 2)), void=9)


def test_a_pixel_is_on_an_edge_if_another_label_is_near() -> None:
    label = np.zeros((7, 9), np.uint8)
    label[:, 6:] = 2
    label[0, 0] = 9  # void is another label too
    expected = np.zeros((7, 9), bool)
    expected[:, 5:7] = True
    expected[:2, :2] = True
    np.testing.assert_array_equal(label_edges(label, 1), expected)
    expected[:, 4:8] = True
    expected[:3, :3] = True
    np.testing.assert_array_equal(label_edges(label, 2), expected)


def test_the_two_parts_have_the_figures_of_their_pixels_alone() -> None:
    generator = torch.Generator().manual_seed(0)
    label = torch.randint(0, 3, (6, 8), generator=generator).repeat_interleave(5, 0).repeat_interleave(5, 1).numpy()
    label = label.astype(np.uint8)
    label[:3, :4] = 9
    probs = torch.softmax(2 * torch.randn(3, 30, 40, generator=generator), 0)
    blank = np.zeros((30, 40), np.uint8)
    maps = Maps(blank, blank, blank, blank, probs=probs.numpy())
    metrics = EdgeMetrics(CLASSES, 1)
    metrics.update(Frame(np.zeros((30, 40, 3), np.uint8), 0, 0.0, label), maps)
    metrics.update(Frame(np.zeros((30, 40, 3), np.uint8), 1, 0.1), maps)  # without a label
    found, edges = metrics.result(), label_edges(label, 1)
    valid = label != 9
    for name, part in (("on", edges), ("away", ~edges)):
        alone = StreamingMetrics(3)
        kept = torch.from_numpy(part & valid)
        alone.update(probs[:, kept].T, torch.from_numpy(label)[kept].long())
        expected = alone.result()
        assert found[name]["share"] == (part & valid).sum() / valid.sum()
        for key in EDGE_KEYS:
            assert found[name][key] == pytest.approx(expected[key], rel=1e-6), key


def test_a_part_without_a_pixel_has_no_figures() -> None:
    blank = np.zeros((4, 4), np.uint8)
    metrics = EdgeMetrics(CLASSES, 1)
    probs = np.full((3, 4, 4), 1 / 3, np.float32)
    metrics.update(Frame(np.zeros((4, 4, 3), np.uint8), 0, 0.0, blank), Maps(blank, blank, blank, blank, probs=probs))
    found = metrics.result()
    assert found["on"] == {"share": 0.0, "nll": None, "accuracy": None, "miou": None, "ece": None}
    assert found["away"]["share"] == 1.0 and found["away"]["nll"] == pytest.approx(np.log(3))
