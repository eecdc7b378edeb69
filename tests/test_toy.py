"""The regression toy against its closed form, which the notebook draws."""

import numpy as np
import pytest

from demos.toy import (
    TAU,
    Predictive,
    bnn,
    dnn,
    expected_bnn,
    expected_vq_bnn,
    moving_input,
    past_weights,
    vq_bnn,
    weight_variance,
)
from steadyseg.core.prediction import Prediction
from steadyseg.core.temporal import TemporalSmoothing

RUNS = 20_000


def assert_means(found: Predictive, expected: Predictive) -> None:
    """The mean over many runs, to within four standard errors."""
    for values, wanted in zip(found, expected, strict=True):
        error = values.std(0) / RUNS**0.5
        assert (np.abs(values.mean(0) - wanted) < 4.5 * error + 1e-12).all()


def test_thousands_of_runs_have_the_moments_of_the_closed_form() -> None:
    x = moving_input(12)
    repeated = np.broadcast_to(x, (RUNS, len(x)))
    assert_means(vq_bnn(repeated), expected_vq_bnn(x))
    assert_means(bnn(repeated, 5), expected_bnn(x, 5))


def test_the_weights_are_those_of_the_product() -> None:
    import torch

    smoothing, state = TemporalSmoothing(TAU), None
    for step in range(6):
        probs = torch.zeros(1, 6, dtype=torch.float64)
        probs[0, step] = 1.0
        mean, state = smoothing(Prediction(probs, torch.zeros(1, dtype=torch.float64)), state)
        np.testing.assert_allclose(mean.probs[0], past_weights(6, TAU)[step], atol=1e-12)


def test_the_spread_is_of_the_weights_and_of_the_motion() -> None:
    """On a still input the spread is the weights' spread, less the part that moves the mean; on a moving input it is
    more."""
    still, moving = np.full(40, -10.0), np.linspace(-10.0, -6.0, 40)
    weights = past_weights(40, TAU)[-1]
    alone = weight_variance(still[:1])[0] * (1 - (weights**2).sum())
    assert expected_vq_bnn(still).variance[-1] == pytest.approx(alone)
    assert expected_vq_bnn(moving - moving[-1] - 10.0).variance[-1] > alone
    assert (dnn(moving).variance == 0).all() and np.allclose(expected_bnn(still).mean, -10.0)
