"""Depth's moments, likelihood and figures against closed forms, and a short training on real street depth."""

import math

import numpy as np
import pytest
import torch

from steadyseg.core.temporal import TemporalSmoothing
from steadyseg.studies.systems.depth import FAR, Moments, figures, nll, pictures, train


def moments(mean: float, deviation: float) -> Moments:
    return Moments(torch.full((1, 2, 3), mean), torch.full((1, 2, 3), deviation**2))


def test_the_mean_over_time_has_the_moments_of_the_mixture() -> None:
    """Two frames with weights e^-0.8 and 1: law of total variance."""
    rule, state, parts = TemporalSmoothing(1.25), None, [moments(1.0, 0.5), moments(2.0, 0.1)]
    for part in parts:
        mixture, state = rule(part.as_mixture, state)
    found = Moments.of_mixture(mixture)
    weights = np.array([math.exp(-0.8), 1.0]) / (1 + math.exp(-0.8))
    mean = weights @ [1.0, 2.0]
    variance = weights @ [0.25, 0.01] + weights @ [1.0, 4.0] - mean**2
    assert found.mean[0, 0, 0].item() == pytest.approx(mean, rel=1e-5)
    assert found.variance[0, 0, 0].item() == pytest.approx(variance, rel=1e-4)


def test_the_figures_are_the_closed_forms_without_what_is_far() -> None:
    metres = torch.tensor([[[10.0, 20.0, 40.0], [10.0, FAR, math.inf]]])
    said = Moments(torch.full((1, 2, 3), math.log(12.0)), torch.full((1, 2, 3), 0.04))
    logs = np.log([10, 20, 40, 10]) - np.log(12)
    expected = 0.5 * (math.log(2 * math.pi) + math.log(0.04) + (logs**2).mean() / 0.04)
    assert nll(said, metres).item() == pytest.approx(expected, rel=1e-5)
    found = figures([said], [metres[0]])
    assert found["rmse_m"] == pytest.approx(np.sqrt(np.mean([4, 64, 784, 4])), rel=1e-5)
    assert (found["delta_1"], found["delta_2"], found["delta_3"]) == (0.5, 0.5, 0.75)


@pytest.mark.slow
def test_a_short_training_is_better_than_one_depth_for_all() -> None:
    images, depths = pictures(range(5000, 5003), 2)
    network = train(images, depths, steps=40)
    with torch.no_grad():
        from steadyseg.studies.systems.depth import CONSTANT

        found = Moments.of_output(network(CONSTANT(images.float())))
    near = depths < FAR
    spread = depths[near].log()
    constant = 0.5 * (math.log(2 * math.pi * spread.var().item()) + 1)
    assert nll(found, depths).item() < constant
