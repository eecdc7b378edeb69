"""Temporal smoothing against the explicit weighted sum exp(-age / tau), for the recursion and the exact window."""

import math

import pytest
import torch
from torch import Tensor

from core.errors import InputError
from core.prediction import Prediction, entropy
from core.temporal import RecursionState, State, TemporalSmoothing, WindowState

PUBLISHED = (0.55524, 0.24949, 0.11210, 0.05037, 0.02263, 0.01017)
"""arXiv 1907.05911, K = 5, tau = 1.25, newest to oldest."""


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


@pytest.mark.parametrize("tau", [0.05, 0.5, 1.25, 7.0, 1000.0])
def test_the_recursion_equals_the_weighted_sum_over_all_frames(tau: float) -> None:
    frames = stream(12)
    for count, result in enumerate(run(TemporalSmoothing(tau), frames)[0], start=1):
        probs, member_entropy = weighted_sum(frames[:count], list(reversed(range(count))), tau)
        torch.testing.assert_close(result.probs, probs, rtol=0, atol=1e-12)
        torch.testing.assert_close(result.member_entropy, member_entropy, rtol=0, atol=1e-12)


@pytest.mark.parametrize("window", [0, 1, 2, 5, 30])
@pytest.mark.parametrize("tau", [0.05, 1.25, 7.0])
def test_the_window_equals_the_weighted_sum_over_its_frames(tau: float, window: int) -> None:
    frames = stream(12)
    for count, result in enumerate(run(TemporalSmoothing(tau, window), frames)[0], start=1):
        inside = frames[max(0, count - window - 1) : count]
        probs, member_entropy = weighted_sum(inside, list(reversed(range(len(inside)))), tau)
        torch.testing.assert_close(result.probs, probs, rtol=0, atol=1e-12)
        torch.testing.assert_close(result.member_entropy, member_entropy, rtol=0, atol=1e-12)


def test_the_published_weights_come_out() -> None:
    """Frame t is certain of class t: the smoothed probabilities are the weights themselves."""
    frames = [certain(one) for one in torch.eye(9)]
    last = run(TemporalSmoothing(tau=1.25, window=5), frames)[0][-1].probs[0]
    assert last.flip(0)[:6].tolist() == pytest.approx(PUBLISHED, abs=5e-6)
    assert not last.flip(0)[6:].any()


def test_the_defaults_are_the_published_decay() -> None:
    frames = [certain(one) for one in torch.eye(60, dtype=torch.float64)]
    last = run(TemporalSmoothing(), frames)[0][-1].probs[0].flip(0)
    assert last[0].item() == pytest.approx(0.55067, abs=5e-6)  # published: 1 - exp(-1 / tau)
    assert (last[1:20] / last[:19]).tolist() == pytest.approx([math.exp(-0.8)] * 19)


@pytest.mark.parametrize(("window", "tau"), [(5, 1.25), (2, 1.25), (5, 4.0), (0, 1.25)])
def test_window_and_recursion_differ_by_the_mass_that_the_window_forgets(window: int, tau: float) -> None:
    """The worst case: everything that is forgotten is certain of class 0, everything kept of class 1."""
    forgotten, kept = (certain(one) for one in torch.eye(2, dtype=torch.float64))
    frames = [forgotten] * 60 + [kept] * (window + 1)
    inside, beyond = (run(TemporalSmoothing(tau, w), frames)[0][-1].probs[0] for w in (window, None))
    limit = math.exp(-(window + 1) / tau)
    assert inside.tolist() == pytest.approx([0.0, 1.0], abs=1e-15)
    assert beyond[0].item() == pytest.approx(limit, rel=1e-4) and beyond[0].item() <= limit
    if (window, tau) == (5, 1.25):
        assert limit == pytest.approx(0.0082, abs=5e-5)


def test_on_any_stream_the_two_rules_differ_by_no_more_than_that() -> None:
    frames = stream(40)
    inside, beyond = (run(TemporalSmoothing(1.25, w), frames)[0] for w in (5, None))
    for a, b in zip(inside, beyond, strict=True):
        assert (a.probs - b.probs).abs().max() <= math.exp(-6 / 1.25)


@pytest.mark.parametrize("window", [None, 7])
def test_dropped_frames_decay_by_their_true_age(window: int | None) -> None:
    frames, gaps = stream(5), [1, 3, 1, 2, 1]
    indices = [0, 3, 4, 6, 7]
    probs, member_entropy = weighted_sum(frames, [7 - index for index in indices], 1.25)
    result = run(TemporalSmoothing(1.25, window), frames, gaps)[0][-1]
    torch.testing.assert_close(result.probs, probs, rtol=0, atol=1e-12)
    torch.testing.assert_close(result.member_entropy, member_entropy, rtol=0, atol=1e-12)


def test_the_window_forgets_by_source_frames_and_not_by_calls() -> None:
    frames, gaps, indices = stream(6), [1, 3, 1, 2, 1, 2], [0, 3, 4, 6, 7, 9]
    result, state = run(TemporalSmoothing(1.25, window=5), frames, gaps)
    kept = [i for i, index in enumerate(indices) if 9 - index <= 5]
    probs, _ = weighted_sum([frames[i] for i in kept], [9 - indices[i] for i in kept], 1.25)
    torch.testing.assert_close(result[-1].probs, probs, rtol=0, atol=1e-12)
    assert isinstance(state, WindowState) and state.ages.tolist() == [
        1,
        3,
        4,
        6,
        7,
    ]  # counted from 1; the last is too old


@pytest.mark.parametrize("window", [0, 5])
def test_a_gap_longer_than_the_window_leaves_only_the_newest_frame(window: int) -> None:
    first, second = stream(2)
    rule = TemporalSmoothing(1.25, window)
    result, _ = rule(second, rule(first, None)[1], gap=window + 1)
    torch.testing.assert_close(result.probs, second.probs)


@pytest.mark.parametrize("window", [None, 5])
def test_without_state_the_stream_starts_anew(window: int | None) -> None:
    rule, frames = TemporalSmoothing(1.25, window), stream(6)
    run(rule, frames[:3])
    afresh = rule(frames[3], None)[0]
    assert torch.equal(afresh.probs, frames[3].probs)
    assert torch.equal(afresh.member_entropy, frames[3].member_entropy)


@pytest.mark.parametrize("window", [None, 5])
def test_a_constant_stream_stays_constant_from_its_first_frame(window: int | None) -> None:
    frame = stream(1)[0]
    for result in run(TemporalSmoothing(1.25, window), [frame] * 20)[0]:
        torch.testing.assert_close(result.probs, frame.probs, rtol=0, atol=1e-15)
        torch.testing.assert_close(result.member_entropy, frame.member_entropy, rtol=0, atol=1e-14)


@pytest.mark.parametrize("window", [None, 5])
@pytest.mark.parametrize("shape", [(1, 2), (3, 4), (2, 5, 7), (2, 11, 3, 4), (1, 2, 2, 3, 4)])
def test_shapes_and_type_are_kept(shape: tuple[int, ...], window: int | None) -> None:
    results, _ = run(TemporalSmoothing(1.25, window), stream(3, shape))
    assert results[-1].probs.shape == shape and results[-1].member_entropy.shape == (shape[0], *shape[2:])
    assert results[-1].probs.dtype == torch.float64
    torch.testing.assert_close(results[-1].probs.sum(1), torch.ones_like(results[-1].member_entropy))


@pytest.mark.parametrize("window", [None, 5])
def test_streams_of_one_batch_do_not_touch_each_other(window: int | None) -> None:
    left, right = stream(6, (1, 3, 2, 2), seed=1), stream(6, (1, 3, 2, 2), seed=2)
    both = [
        Prediction(torch.cat([a.probs, b.probs]), torch.cat([a.member_entropy, b.member_entropy]))
        for a, b in zip(left, right, strict=True)
    ]
    alone, together = (run(TemporalSmoothing(1.25, window), frames)[0][-1] for frames in (right, both))
    torch.testing.assert_close(together.probs[1:], alone.probs, rtol=0, atol=1e-15)


@pytest.mark.parametrize("window", [None, 5])
def test_a_state_may_be_used_twice(window: int | None) -> None:
    rule, frames = TemporalSmoothing(1.25, window), stream(4)
    state = run(rule, frames[:3])[1]
    first, second = rule(frames[3], state)[0], rule(frames[3], state)[0]
    assert torch.equal(first.probs, second.probs)


def test_memory_does_not_grow() -> None:
    window_state = run(TemporalSmoothing(1.25, 5), stream(30))[1]
    recursion_state = run(TemporalSmoothing(1.25), stream(30))[1]
    assert isinstance(window_state, WindowState) and len(window_state.ages) == 5
    assert isinstance(recursion_state, RecursionState) and recursion_state.probs.shape == (2, 4, 3, 5)
    torch.testing.assert_close(recursion_state.mass, torch.full((2,), 1 / (1 - math.exp(-0.8)), dtype=torch.float64))


@pytest.mark.parametrize("window", [None, 5])
def test_over_time_disagreement_is_jensens_gap_and_never_negative(window: int | None) -> None:
    frames = stream(10)
    for result in run(TemporalSmoothing(1.25, window), frames)[0]:
        gap = entropy(result.probs) - result.member_entropy
        assert gap.min() >= -1e-12
        torch.testing.assert_close(result.disagreement, gap.clamp_min(0))
    assert result.disagreement.max() > 0.1


@pytest.mark.parametrize("window", [None, 5])
@pytest.mark.parametrize("tau", [1e-50, 1e50])
def test_extreme_decay_times_give_the_newest_frame_or_the_plain_mean(tau: float, window: int | None) -> None:
    frames = [Prediction.from_logits(torch.randn(1, 3, 2)) for _ in range(4)]
    result = run(TemporalSmoothing(tau, window), frames)[0][-1]
    expected = frames[-1].probs if tau < 1 else torch.stack([frame.probs for frame in frames]).mean(0)
    torch.testing.assert_close(result.probs, expected)


@pytest.mark.parametrize("tau", [0.0, -1.0, math.nan, math.inf])
def test_a_decay_time_must_be_a_positive_number(tau: float) -> None:
    with pytest.raises(InputError, match="tau must be a positive"):
        TemporalSmoothing(tau)


def test_a_window_must_not_be_negative() -> None:
    with pytest.raises(InputError, match="window must be 0 or more"):
        TemporalSmoothing(1.25, -1)


@pytest.mark.parametrize("gap", [0, -2])
@pytest.mark.parametrize("window", [None, 5])
def test_time_does_not_run_backwards(window: int | None, gap: int) -> None:
    rule, (first, second) = TemporalSmoothing(1.25, window), stream(2)
    state = rule(first, None)[1]
    with pytest.raises(ValueError, match="gap must be 1 or more"):
        rule(second, state, gap=gap)


@pytest.mark.parametrize(("mine", "other"), [(None, 5), (5, None)])
def test_a_state_belongs_to_its_rule(mine: int | None, other: int | None) -> None:
    first, second = stream(2)
    state = TemporalSmoothing(1.25, other)(first, None)[1]
    with pytest.raises(ValueError, match="start anew with None"):
        TemporalSmoothing(1.25, mine)(second, state)
