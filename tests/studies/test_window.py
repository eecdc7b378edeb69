"""The paper's window against the explicit weighted sum exp(-age / tau)."""

import math
from typing import Any

import pytest
import torch
from torch import Tensor

from steadyseg.core.prediction import Prediction
from steadyseg.studies.harness.window import WindowSmoothing, centred_mean

PUBLISHED = (0.55524, 0.24949, 0.11210, 0.05037, 0.02263, 0.01017)
"""arXiv 1907.05911, K = 5, tau = 1.25, newest to oldest."""


def stream(count: int) -> list[Prediction]:
    generator = torch.Generator().manual_seed(0)
    return [
        Prediction.from_logits(3 * torch.randn(2, 4, 3, 5, dtype=torch.float64, generator=generator))
        for _ in range(count)
    ]


def certain(one_hot: Tensor) -> Prediction:
    return Prediction(one_hot[None], one_hot.new_zeros(1))


def run(rule: Any, frames: list[Prediction], gaps: list[int] | None = None) -> list[Prediction]:
    state, results = None, []
    for frame, gap in zip(frames, gaps or [1] * len(frames), strict=True):
        result, state = rule(frame, state, gap)
        results.append(result)
    return results


@pytest.mark.parametrize("window", [1, 5, 30])
@pytest.mark.parametrize("tau", [0.05, 1.25, 7.0])
def test_it_is_the_weighted_sum_over_frames_by_their_age(tau: float, window: int) -> None:
    """Of dropped frames too: the window forgets by source frames, not by calls."""
    frames, gaps, indices = stream(8), [1, 3, 1, 2, 1, 2, 9, 1], [0, 3, 4, 6, 7, 9, 18, 19]
    for count, result in enumerate(run(WindowSmoothing(tau, window), frames, gaps), start=1):
        ages = [indices[count - 1] - index for index in indices[:count]]
        weights = [math.exp(-age / tau) if age <= window else 0.0 for age in ages]
        for name in ("probs", "member_entropy"):
            parts = [w * getattr(f, name) for w, f in zip(weights, frames[:count], strict=True)]
            torch.testing.assert_close(getattr(result, name), sum(parts) / sum(weights), rtol=0, atol=1e-12)


def test_the_published_weights_come_out() -> None:
    """Frame t is certain of class t: the smoothed probabilities are the weights themselves."""
    last = run(WindowSmoothing(), [certain(one) for one in torch.eye(9)])[-1].probs[0]
    assert last.flip(0)[:6].tolist() == pytest.approx(PUBLISHED, abs=5e-6)
    assert not last.flip(0)[6:].any()


def test_later_frames_weigh_by_their_distance_as_earlier_ones_do() -> None:
    """Frame t is certain of class t: row t of the means is the weights of frame t."""
    means = centred_mean(torch.eye(6, dtype=torch.float64), tau=2.0, before=2, after=1)
    weights = torch.tensor([math.exp(-1.0), math.exp(-0.5), 1.0, math.exp(-0.5)], dtype=torch.float64)
    torch.testing.assert_close(means[3], torch.tensor([0.0, *(weights / weights.sum()), 0.0], dtype=torch.float64))
    torch.testing.assert_close(means[5, 3:], weights[:3] / weights[:3].sum())
    past = run(WindowSmoothing(2.0, 2), [certain(one) for one in torch.eye(6)])
    torch.testing.assert_close(centred_mean(torch.eye(6), 2.0, 2), torch.cat([one.probs for one in past]))
