"""The regression toy of VQ-BNN: y = w0 x + w1 with random weights, on an input that moves, and its closed form.

w0 ~ N(1, 0.02^2) and w1 ~ N(0, 0.2^2); a draw of the weights is one forward pass of a Bayesian network. The published
code moves the input from -10 by 0.1 a step, under noise of 0.1.
"""

from typing import NamedTuple

import numpy as np

W0, W1 = (1.0, 0.02), (0.0, 0.2)
"""Mean and standard deviation of slope and offset."""
START, STEP, NOISE = -10.0, 0.1, 0.1
PASSES, TAU = 30, 1.25


class Predictive(NamedTuple):
    """Mean and variance of a prediction at every step, (steps,) or (runs, steps)."""

    mean: np.ndarray
    variance: np.ndarray


def moving_input(steps: int, seed: int = 0) -> np.ndarray:
    """The observed input (steps,): START + STEP t and noise."""
    noise = np.random.default_rng(seed).normal(0.0, NOISE, steps)
    return START + STEP * np.arange(steps) + noise


def dnn(x: np.ndarray) -> Predictive:
    """One pass with the mean weights, which has no spread."""
    return Predictive(W0[0] * x + W1[0], np.zeros_like(x))


def bnn(x: np.ndarray, passes: int = PASSES, seed: int = 0) -> Predictive:
    """The mean and variance of N passes on each input; x is (runs, steps) or (steps,)."""
    values = draw(np.broadcast_to(x, (passes, *x.shape)), np.random.default_rng(seed))
    return Predictive(values.mean(0), values.var(0))


def vq_bnn(x: np.ndarray, tau: float = TAU, seed: int = 0) -> Predictive:
    """Draws one pass at each step. Returns mean and variance of all passes so far, weighted by exp(-age / tau)."""
    values, weights = draw(x, np.random.default_rng(seed)), past_weights(x.shape[-1], tau)
    mean = values @ weights.T
    return Predictive(mean, values**2 @ weights.T - mean**2)


def draw(x: np.ndarray, generator: np.random.Generator) -> np.ndarray:
    """A pass for each input: new weights each time."""
    return generator.normal(*W0, x.shape) * x + generator.normal(*W1, x.shape)


def past_weights(steps: int, tau: float) -> np.ndarray:
    """(steps, steps): row t has the weight of step s <= t in the mean of step t; rows sum to 1."""
    age = np.subtract.outer(np.arange(steps), np.arange(steps))
    weights = np.where(age >= 0, np.exp(-np.maximum(age, 0) / tau), 0.0)
    return weights / weights.sum(1, keepdims=True)


def weight_variance(x: np.ndarray) -> np.ndarray:
    """Variance of y over the weights: 0.02^2 x^2 + 0.2^2."""
    return (W0[1] * x) ** 2 + W1[1] ** 2


def expected_bnn(x: np.ndarray, passes: int = PASSES) -> Predictive:
    """Expectation of `bnn`: the biased variance of N draws is (N - 1) / N of the true variance."""
    return Predictive(W0[0] * x + W1[0], weight_variance(x) * (passes - 1) / passes)


def expected_vq_bnn(x: np.ndarray, tau: float = TAU) -> Predictive:
    """Expectation of `vq_bnn` over the weights.

    With weights p_s and mean m_s of pass s, the mean is M = sum p_s m_s. The second moment is
    sum p_s (v_s + m_s^2), and E[mean^2] = M^2 + sum p_s^2 v_s, since passes are independent.
    """
    weights, means, variances = past_weights(len(x), tau), W0[0] * x + W1[0], weight_variance(x)
    mean = weights @ means
    second = weights @ (variances + means**2)
    return Predictive(mean, second - mean**2 - weights**2 @ variances)
