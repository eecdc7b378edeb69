"""Predictions as two averages: the uncertainty identity, mixtures, and the shapes they accept."""

import math

import numpy as np
import pytest
import torch

from steadyseg.core.prediction import Prediction, entropy, mean_prediction


def members(count: int, shape: tuple[int, ...] = (2, 5, 3, 4), spread: float = 3.0) -> list[Prediction]:
    generator = torch.Generator().manual_seed(count)
    return [
        Prediction.from_logits(spread * torch.randn(shape, dtype=torch.float64, generator=generator))
        for _ in range(count)
    ]


def slow_entropy(probs: np.ndarray) -> float:
    return -sum(p * math.log(p) for p in probs if p > 0)


def test_entropy_is_its_definition_in_nats() -> None:
    probs = members(1)[0].probs
    expected = np.apply_along_axis(slow_entropy, 1, probs.numpy())
    np.testing.assert_allclose(entropy(probs).numpy(), expected, atol=1e-14)


def test_a_certain_prediction_has_no_entropy_and_a_uniform_one_has_ln_k() -> None:
    table = torch.tensor([[1.0, 0.0, 0.0, 0.0], [0.25, 0.25, 0.25, 0.25]], dtype=torch.float64)
    prediction = Prediction(table, entropy(table))
    assert prediction.entropy.tolist() == pytest.approx([0.0, math.log(4)], abs=1e-15)
    assert prediction.max_entropy == pytest.approx(math.log(4), abs=1e-15)


@pytest.mark.parametrize("count", [1, 2, 7])
def test_total_uncertainty_is_expected_entropy_plus_disagreement(count: int) -> None:
    group = members(count)
    mixture = mean_prediction(group)
    expected = torch.stack([entropy(member.probs) for member in group]).mean(0)
    total = entropy(torch.stack([member.probs for member in group]).mean(0))
    torch.testing.assert_close(mixture.member_entropy, expected, rtol=0, atol=1e-14)
    torch.testing.assert_close(mixture.entropy, total, rtol=0, atol=1e-14)
    torch.testing.assert_close(mixture.entropy, mixture.member_entropy + mixture.disagreement, rtol=0, atol=1e-14)


def test_disagreement_is_the_mean_divergence_from_the_mixture_and_never_negative() -> None:
    group = members(6, (50, 4))
    mixture = mean_prediction(group)
    divergence = torch.stack([(m.probs * (m.probs / mixture.probs).log()).sum(1) for m in group]).mean(0)
    assert mixture.disagreement.min() >= 0.0
    torch.testing.assert_close(mixture.disagreement, divergence, rtol=0, atol=1e-12)


@pytest.mark.parametrize("weight", [0.0, 0.25, 1.0])
def test_a_blend_is_the_weighted_mixture_of_both_statistics(weight: float) -> None:
    first, second = members(2)
    blend = first.blend(second, weight)
    torch.testing.assert_close(blend.probs, (1 - weight) * first.probs + weight * second.probs)
    torch.testing.assert_close(
        blend.member_entropy, (1 - weight) * first.member_entropy + weight * second.member_entropy
    )


def test_the_mean_of_nothing_is_refused() -> None:
    with pytest.raises(ValueError, match="at least one"):
        mean_prediction([])


@pytest.mark.parametrize("temperature", [1.0, 0.5, 3.0])
def test_logits_are_divided_by_the_temperature_before_the_softmax(temperature: float) -> None:
    logits = torch.randn(2, 4, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    prediction = Prediction.from_logits(logits, temperature)
    shares = np.exp(logits.numpy() / temperature)
    np.testing.assert_allclose(prediction.probs.numpy(), shares / shares.sum(1, keepdims=True), atol=1e-14)
    torch.testing.assert_close(prediction.member_entropy, entropy(prediction.probs))
    assert torch.equal(prediction.labels, logits.argmax(1))


def test_huge_logits_stay_finite() -> None:
    prediction = Prediction.from_logits(torch.tensor([[3e38, -3e38, 0.0]]))
    assert prediction.probs.tolist() == [[1.0, 0.0, 0.0]] and prediction.entropy.item() == 0.0


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_half_precision_logits_become_single_precision_probabilities(dtype: torch.dtype) -> None:
    logits = torch.randn(3, 11, 4, generator=torch.Generator().manual_seed(1)).to(dtype)
    prediction = Prediction.from_logits(logits, 1.5)
    assert prediction.probs.dtype == prediction.member_entropy.dtype == torch.float32
    torch.testing.assert_close(prediction.probs, torch.softmax(logits.float() / 1.5, 1))
    torch.testing.assert_close(prediction.probs.sum(1), torch.ones(3, 4))


def test_labels_and_confidence_are_the_arg_max_and_its_probability() -> None:
    table = torch.tensor([[[0.2, 0.5], [0.7, 0.1], [0.1, 0.4]]])
    prediction = Prediction(table, entropy(table))
    assert prediction.labels.tolist() == [[1, 0]]
    assert prediction.confidence[0].tolist() == pytest.approx([0.7, 0.5])


@pytest.mark.parametrize(
    ("probs", "member_entropy"),
    [((2, 4, 3), (2, 4)), ((2, 4, 3), (2,)), ((2, 4, 3), (1, 3)), ((2, 4), (2, 1)), ((4,), (4,))],
)
def test_statistics_of_different_shapes_are_refused(probs: tuple[int, ...], member_entropy: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match="member_entropy must be"):
        Prediction(torch.zeros(probs), torch.zeros(member_entropy))
