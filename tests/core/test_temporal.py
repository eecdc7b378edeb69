"""Temporal smoothing against the explicit weighted sum exp(-age / tau)."""

import math

import numpy as np
import pytest
import torch
from torch import Tensor

from steadyseg.core.prediction import Prediction
from steadyseg.core.temporal import State, TemporalSmoothing


def stream(count: int, shape: tuple[int, ...] = (2, 4, 3, 5), seed: int = 0) -> list[Prediction]:
    generator = torch.Generator().manual_seed(seed)
    logits = [3 * torch.randn(shape, dtype=torch.float64, generator=generator) for _ in range(count)]
    return [Prediction.from_logits(one) for one in logits]


def certain(one_hot: Tensor) -> Prediction:
    return Prediction(one_hot[None], one_hot.new_zeros(1))


def run(
    rule: TemporalSmoothing, frames: list[Prediction], gaps: list[int] | None = None
) -> tuple[list[Prediction], State | None]:
    state, results = None, []
    for frame, gap in zip(frames, gaps or [1] * len(frames), strict=True):
        result, state = rule(frame, state, gap)
        results.append(result)
    return results, state


def weighted_sum(frames: list[Prediction], ages: list[int], tau: float) -> tuple[Tensor, Tensor]:
    """sum_t exp(-age_t / tau) p_t / sum_t exp(-age_t / tau), one frame after the other."""
    weights = [math.exp(-age / tau) for age in ages]
    probs, spread = torch.zeros_like(frames[0].probs), torch.zeros_like(frames[0].member_entropy)
    for weight, frame in zip(weights, frames, strict=True):
        probs += weight * frame.probs
        spread += weight * frame.member_entropy
    return probs / sum(weights), spread / sum(weights)


@pytest.mark.parametrize("tau", [0.05, 1.25, 1000.0])
def test_the_recursion_equals_the_weighted_sum_over_all_frames(tau: float) -> None:
    frames = stream(12)
    for count, result in enumerate(run(TemporalSmoothing(tau), frames)[0], start=1):
        probs, member_entropy = weighted_sum(frames[:count], list(reversed(range(count))), tau)
        torch.testing.assert_close(result.probs, probs, rtol=0, atol=1e-12)
        torch.testing.assert_close(result.member_entropy, member_entropy, rtol=0, atol=1e-12)


def test_the_defaults_are_the_published_decay() -> None:
    frames = [certain(one) for one in torch.eye(60, dtype=torch.float64)]
    last = run(TemporalSmoothing(), frames)[0][-1].probs[0].flip(0)
    assert last[0].item() == pytest.approx(0.55067, abs=5e-6)  # published: 1 - exp(-1 / tau)
    assert (last[1:20] / last[:19]).tolist() == pytest.approx([math.exp(-0.8)] * 19)


def test_dropped_frames_decay_by_their_true_age() -> None:
    frames, gaps = stream(5), [1, 3, 1, 2, 1]
    indices = [0, 3, 4, 6, 7]
    probs, member_entropy = weighted_sum(frames, [7 - index for index in indices], 1.25)
    result = run(TemporalSmoothing(1.25), frames, gaps)[0][-1]
    torch.testing.assert_close(result.probs, probs, rtol=0, atol=1e-12)
    torch.testing.assert_close(result.member_entropy, member_entropy, rtol=0, atol=1e-12)


@pytest.mark.parametrize("shape", [(3, 4), (2, 5, 7), (1, 2, 2, 3, 4)])
def test_shapes_and_type_are_kept(shape: tuple[int, ...]) -> None:
    results, _ = run(TemporalSmoothing(1.25), stream(3, shape))
    assert results[-1].probs.shape == shape and results[-1].member_entropy.shape == (shape[0], *shape[2:])
    assert results[-1].probs.dtype == torch.float64
    torch.testing.assert_close(results[-1].probs.sum(1), torch.ones_like(results[-1].member_entropy))


@pytest.mark.parametrize("tau", [1e-50, 1e50])
def test_extreme_decay_times_give_the_newest_frame_or_the_plain_mean(tau: float) -> None:
    frames = [Prediction.from_logits(torch.randn(1, 3, 2)) for _ in range(4)]
    result = run(TemporalSmoothing(tau), frames)[0][-1]
    expected = frames[-1].probs if tau < 1 else torch.stack([frame.probs for frame in frames]).mean(0)
    torch.testing.assert_close(result.probs, expected)


def test_time_does_not_run_backwards() -> None:
    rule, (first, second) = TemporalSmoothing(1.25), stream(2)
    state = rule(first, None)[1]
    with pytest.raises(ValueError, match="gap must be 1 or more"):
        rule(second, state, gap=0)


def test_the_geometric_mean_is_the_normalised_product_of_powers() -> None:
    """Against numpy, all frames at once: g ~ prod p_t^w_t, and the divergence sum w_t KL(g || p_t)."""
    frames, gaps, ages, tau = stream(5), [1, 3, 1, 2, 1], np.array([7, 4, 3, 1, 0]), 1.25
    weights = np.exp(-ages / tau) / np.exp(-ages / tau).sum()
    probs = np.stack([frame.probs.numpy() for frame in frames])
    product = np.prod(probs ** weights.reshape(-1, 1, 1, 1, 1), axis=0)
    mean = product / product.sum(1, keepdims=True)
    apart = np.einsum("t,tbkhw->bhw", weights, mean * np.log(mean / probs))
    result = run(TemporalSmoothing(tau, geometric=True), frames, gaps)[0][-1]
    np.testing.assert_allclose(result.probs, mean, rtol=0, atol=1e-12)
    np.testing.assert_allclose(result.disagreement, apart, rtol=0, atol=1e-12)


def test_no_frame_excludes_a_class_from_the_geometric_mean() -> None:
    sure, other = certain(torch.tensor([1.0, 0.0])), Prediction(torch.tensor([[0.3, 0.7]]), torch.zeros(1))
    results, _ = run(TemporalSmoothing(geometric=True), [sure, *[other] * 40])
    torch.testing.assert_close(results[0].probs, sure.probs, rtol=0, atol=1e-6)
    torch.testing.assert_close(results[-1].probs, other.probs)
