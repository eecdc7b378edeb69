"""Conformal thresholds, sets and risk control against sorting, loops and fresh exchangeable data."""

import math

import numpy as np
import pytest
import torch
from refusals import refusal
from torch import Tensor

from steadyseg.core.errors import InputError
from steadyseg.core.evaluation.conformal import (
    RISK_BINS,
    SCORE_BINS,
    ClassRisk,
    ConformalScores,
    Coverage,
    prediction_sets,
)

CLASSES = 6
VOID = 255


def exchangeable(seed: int, pixels: int = 20_000, concentration: float = 0.3) -> tuple[Tensor, Tensor]:
    """(K, N) float64 probabilities and labels drawn from them: about 64 % are right."""
    generator = np.random.default_rng(seed)
    probs = generator.dirichlet([concentration] * CLASSES, size=pixels)
    labels = (probs.cumsum(1) < generator.random((pixels, 1))).sum(1).clip(0, CLASSES - 1)
    return torch.from_numpy(probs.T.copy()), torch.from_numpy(labels.astype(np.uint8))


def slow_scores(probs: Tensor, labels: Tensor) -> np.ndarray:
    """The sorted scores of the non-void pixels, one after the other."""
    return np.sort([1.0 - p[k] for p, k in zip(probs.numpy().T, labels.tolist(), strict=True) if k != VOID])


def fitted(probs: Tensor, labels: Tensor) -> ConformalScores:
    scores = ConformalScores(VOID)
    scores.update(probs, labels)
    return scores


@pytest.mark.parametrize("coverage", [0.5, 0.8, 0.9, 0.99])
@pytest.mark.parametrize("pixels", [400, 999])
def test_thresholds_are_the_corrected_quantiles_of_the_sorted_scores(pixels: int, coverage: float) -> None:
    probs, labels = exchangeable(1, pixels)
    labels[::7] = VOID
    found, scores = fitted(probs, labels).threshold(coverage), slow_scores(probs, labels)
    exact = scores[math.ceil((len(scores) + 1) * coverage) - 1]
    assert 0.0 < found - exact <= 1 / SCORE_BINS + 1e-12


def test_scores_may_come_in_parts_and_in_any_shape() -> None:
    probs, labels = exchangeable(2, 1200)
    parts = ConformalScores(VOID)
    parts.update(probs[:, :200].view(CLASSES, 10, 20), labels[:200].view(10, 20))
    parts.update(probs[:, 200:].view(CLASSES, 40, 25), labels[200:].view(40, 25))
    assert parts.threshold(0.9) == fitted(probs, labels).threshold(0.9)


def test_fresh_exchangeable_pixels_are_covered_as_asked() -> None:
    coverage = 0.9
    threshold = fitted(*exchangeable(5)).threshold(coverage)
    probs, labels = exchangeable(6)
    assert 0.5 < (probs.argmax(0) == labels).double().mean() < 0.75 < coverage  # the top class alone would not do
    error = 4 * math.sqrt(2 * coverage * (1 - coverage) / len(labels))  # of the threshold and of the fresh pixels
    sets = prediction_sets(probs, threshold)
    covered = sets.gather(0, labels[None].long()).double().mean().item()
    assert abs(covered - coverage) < error
    assert 1.0 < sets.double().sum(0).mean().item() < CLASSES


@pytest.mark.parametrize("threshold", [0.0, 0.2, 0.7, 1.0])
def test_sets_equal_a_loop_over_pixels_and_hold_the_top_class(threshold: float) -> None:
    probs = exchangeable(7, 200)[0]
    sets = prediction_sets(probs.view(CLASSES, 10, 20), threshold).view(CLASSES, -1)
    for pixel, p in enumerate(probs.numpy().T):
        expected = {int(p.argmax())} | {k for k in range(CLASSES) if 1.0 - p[k] <= threshold}
        assert set(sets[:, pixel].nonzero().flatten().tolist()) == expected
    sizes = sets.sum(0)
    assert sizes.min() == (CLASSES if threshold == 1.0 else 1) and (sizes.max() == 1) == (threshold <= 0.2)


def test_a_sure_and_right_network_needs_the_top_class_alone() -> None:
    probs = torch.zeros(CLASSES, 500)
    labels = torch.arange(500) % CLASSES
    probs[labels, torch.arange(500)] = 1.0
    threshold = fitted(probs, labels).threshold(0.9)
    assert threshold == 1 / SCORE_BINS and (prediction_sets(probs, threshold).sum(0) == 1).all()


def test_too_few_pixels_for_a_coverage_are_refused() -> None:
    probs, labels = exchangeable(9, 9)
    assert "more than 8 labelled" in refusal(fitted(probs[:, :8], labels[:8]).threshold, 0.9)
    assert fitted(probs, labels).threshold(0.9) >= slow_scores(probs, labels)[-1]
    assert "more than 0 labelled" in refusal(ConformalScores(VOID).threshold, 0.9)


def image(generator: np.random.Generator, pixels: int = 60) -> tuple[Tensor, Tensor]:
    """(2, N) probabilities and labels of an image that is easy or hard as a whole; class 1 is missed."""
    hardness = generator.uniform(1.0, 6.0)
    labels = (generator.random(pixels) < 0.4).astype(np.uint8)
    labels[0] = 1
    one = np.where(labels == 1, generator.beta(6.0, hardness, pixels), generator.beta(1.0, 5.0, pixels))
    labels[generator.random(pixels) < 0.1] = VOID
    labels[0] = 1
    return torch.from_numpy(np.stack([1 - one, one]).astype(np.float32)), torch.from_numpy(labels)


def images(seed: int, count: int) -> list[tuple[Tensor, Tensor]]:
    generator = np.random.default_rng(seed)
    return [image(generator) for _ in range(count)]


def risk_of(examples: list[tuple[Tensor, Tensor]]) -> ClassRisk:
    risk = ClassRisk(1, VOID)
    for probs, labels in examples:
        risk.update(probs, labels)
    return risk


@pytest.mark.parametrize("level", [0.05, 0.1, 0.3])
def test_control_equals_a_search_over_all_thresholds(level: float) -> None:
    examples = images(0, 40)
    inside = [np.sort(probs[1][labels == 1].double().numpy()) for probs, labels in examples]
    best, risk_there = 0.0, 0.0
    for threshold in np.arange(RISK_BINS + 1) / RISK_BINS:
        losses = [np.searchsorted(scores, threshold) / len(scores) for scores in inside]
        if (sum(losses) + 1) / (len(losses) + 1) <= level:
            best, risk_there = threshold, sum(losses) / len(losses)
    reported = torch.cat([probs[1][labels != VOID] for probs, labels in examples]).double() >= best
    found = risk_of(examples).control(level, "Car")
    assert (found["class"], found["level"], found["images"], found["threshold"]) == ("Car", level, 40, best)
    assert found["risk"] == pytest.approx(risk_there, abs=1e-12) and 0 < best < 1
    assert found["reported_share"] == pytest.approx(reported.double().mean().item(), abs=1e-12)


def test_views_of_an_image_are_one_unit() -> None:
    examples = images(2, 20)
    once, twice = risk_of(examples), risk_of([*examples, *examples])
    assert twice.control(0.1, "Car", views=2) == pytest.approx(once.control(0.1, "Car"))
    with pytest.raises(InputError, match="20 images hold Car"):
        twice.control(0.04, "Car", views=2)


def test_images_without_the_class_count_only_for_what_is_reported() -> None:
    examples = images(1, 30)
    empty = torch.tensor([[0.0, 0.9], [1.0, 0.1]]), torch.tensor([0, 0], dtype=torch.uint8)
    found, expected = (risk_of(some).control(0.1, "Car") for some in ([*examples, empty], examples))
    pixels = sum(int((labels != VOID).sum()) for _, labels in examples)
    reported = (expected["reported_share"] * pixels + 1) / (pixels + 2)  # one of its two pixels is sure of the class
    assert found == {**expected, "reported_share": pytest.approx(reported)}


@pytest.mark.parametrize(("level", "needed"), [(0.05, 19), (0.1, 9), (0.5, 1)])
def test_too_few_images_for_a_level_are_refused(level: float, needed: int) -> None:
    examples = images(3, needed)
    message = refusal(risk_of(examples[:-1]).control, level, "Car")
    assert f"{needed - 1} images hold Car" in message and f"{needed} or more" in message
    assert risk_of(examples).control(level, "Car")["risk"] == 0  # with the fewest, nothing may be missed


def test_fresh_images_miss_no_more_than_the_level_on_average() -> None:
    """Over many draws of 20 images: the guarantee is level - 2 / (n + 1) <= E[risk] <= level."""
    level, count, risks = 0.2, 20, []
    for trial in range(60):
        threshold = risk_of(images(1000 + trial, count)).control(level, "Car")["threshold"]
        scores = [probs[1][labels == 1].double() for probs, labels in images(9000 + trial, count)]
        risks += [(values < threshold).double().mean().item() for values in scores]
    error = 3 * np.std(risks) / math.sqrt(60)  # the images of one trial share a threshold
    assert level - 2 / (count + 1) - error < np.mean(risks) < level


def test_coverage_counts_pixels_and_images() -> None:
    probs = torch.tensor([[0.6, 0.6, 0.5, 0.2], [0.3, 0.3, 0.5, 0.2], [0.1, 0.1, 0.0, 0.6]])  # (K, 4)
    coverage = Coverage(0.7, void=9)  # Classes of 0.3 and more.
    coverage.update(probs, torch.tensor([0, 2, 1, 9]))  # In, out, in, void: 2 of 3. Sets of 2, 2, 2.
    coverage.update(probs, torch.tensor([9, 1, 9, 2]))  # In, in: 2 of 2. Sets of 2 and 1.
    coverage.update(probs, torch.full((4,), 9))  # An image of void does not count.
    found = coverage.result()
    assert found["coverage"] == pytest.approx(4 / 5) and found["set_size"] == pytest.approx(9 / 5)
    assert found["coverage_image_mean"] == pytest.approx((2 / 3 + 1) / 2)
    assert found["coverage_image_min"] == found["coverage_image_p5"] == pytest.approx(2 / 3)
    with pytest.raises(InputError, match="no labelled pixel"):
        Coverage(0.7, void=9).result()


def test_a_controlled_threshold_says_what_it_misses_elsewhere() -> None:
    risk = ClassRisk(0, void=9)
    risk.update(torch.tensor([[0.9, 0.2, 0.4, 0.6], [0.1, 0.8, 0.6, 0.4]]), torch.tensor([0, 0, 1, 9]))
    found = risk.at(0.5)
    assert found == {"risk": 0.5, "reported_share": pytest.approx(1 / 3), "images": 1}
    assert ClassRisk(0, void=9).at(0.5)["risk"] is None
