"""Confident learning against the paper's definition pixel by pixel, and the regions that it leads to."""

import numpy as np
import pytest

from steadyseg.seg.label_errors import ConfidentJoint, find_suspects


def slow_joint(pictures: list[tuple[np.ndarray, np.ndarray]], classes: int) -> tuple[list[float], np.ndarray]:
    """Thresholds and confident joint by equations 1 and 2 of arXiv 1911.00068, over one list of all pixels."""
    pixels = [
        (int(label[place]), probs[(slice(None), *place)].tolist())
        for probs, label in pictures
        for place in np.ndindex(*label.shape)
        if label[place] < classes
    ]
    thresholds = []
    for one in range(classes):
        own = [p[one] for given, p in pixels if given == one]
        thresholds.append(sum(own) / len(own) if own else float("inf"))
    joint = np.zeros((classes, classes), int)
    for given, p in pixels:
        passing = [one for one in range(classes) if p[one] >= thresholds[one] - 1e-6]
        if passing:
            joint[given, max(passing, key=lambda one: p[one])] += 1
    return thresholds, joint


def test_the_joint_is_that_of_the_paper() -> None:
    generator = np.random.default_rng(0)
    pictures = []
    for _ in range(3):
        label = generator.choice([0, 1, 2, 255], size=(12, 17)).astype(np.uint8)  # class 3 never occurs
        logits = generator.normal(size=(4, 12, 17)) + 1.5 * (label == np.arange(4)[:, None, None])
        pictures.append((np.exp(logits) / np.exp(logits).sum(0), label))
    found = ConfidentJoint(4)
    for picture in pictures:
        found.add_to_thresholds(*picture)
    for picture in pictures:
        found.add_to_joint(picture[1], found.confident_classes(picture[0]))
    thresholds, joint = slow_joint(pictures, 4)
    assert found.thresholds == pytest.approx(thresholds)
    assert np.array_equal(found.joint, joint) and joint[:, 3].sum() == 0 < joint[0, 1]


def test_connected_pixels_of_one_label_and_one_class_are_a_suspect() -> None:
    truth = np.zeros((60, 80), np.uint8)
    truth[:30] = 1
    given = truth.copy()
    given[10:22, 10:22] = 2  # a whole object
    given[26:40, 50:60] = 3  # one on the edge of two classes
    given[50:54, 70:74] = 3  # too small
    probs = np.where(truth == np.arange(4)[:, None, None], 0.97, 0.01)
    joint = ConfidentJoint(4)
    joint.add_to_thresholds(probs, given)
    confident = joint.confident_classes(probs)
    found = {(one.label, one.suggested): one for one in find_suspects(confident, probs, given, min_pixels=20)}
    assert {pair: one.region.pixels for pair, one in found.items()} == {(2, 1): 144, (3, 1): 40, (3, 0): 100}
    one = found[2, 1]
    assert (one.region.rows, one.region.columns) == (slice(10, 22), slice(10, 22)) and one.region.mask.all()
    assert (one.self_confidence, one.confidence) == (pytest.approx(0.01), pytest.approx(0.97))
