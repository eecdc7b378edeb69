"""The fit of the expected accuracy (core/expected.py) on frames of many data sets."""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import binary_cross_entropy_with_logits, softplus

from steadyseg.core.expected import QUARTERS, STRIDE, SURE, ExpectedAccuracy, bands

RARE_SHARE = 1e-3
"""Added to the share of every class in a band, so that a class that never stood there has a finite cost."""
RIDGE = 1e-4
"""Factor on the sum of the squared weights, in nats."""


class Seen(NamedTuple):
    """One frame of the fit."""

    group: str
    """Data set, or kind of pictures; all groups weigh the same."""
    confidence: float
    """Mean confidence of the frame, 0..1."""
    score: float
    layout: float
    """Cost of the layout in nats, not standardised."""
    right: float
    """Share of right pixels; 0 for a picture that the network is not for."""


def class_costs(labels: Sequence[np.ndarray], classes: int) -> np.ndarray:
    """(QUARTERS, K) costs of the predicted label maps of the training domain."""
    counts = np.zeros((QUARTERS, classes))
    for label in labels:
        small, places = label[::STRIDE, ::STRIDE], bands(len(label))
        for band in range(QUARTERS):
            counts[band] += np.bincount(small[places == band].ravel(), minlength=classes)[:classes]
    shares = counts / np.maximum(counts.sum(1, keepdims=True), 1) + RARE_SHARE
    return np.asarray(-np.log(shares / shares.sum(1, keepdims=True)))


def fit_expected(seen: Sequence[Seen], costs: np.ndarray, home: Sequence[float]) -> ExpectedAccuracy:
    """Fits the weights by cross-entropy. `home`: layout costs of frames of the training domain. The error is measured
    on each group by a fit on all other groups, where there are two or more."""
    mean, deviation = float(np.mean(home)), max(float(np.std(home)), 1e-3)
    table = tuple(tuple(round(float(one), 4) for one in row) for row in costs)
    start = ExpectedAccuracy(0.0, 0.0, 0.0, 0.0, table, mean, deviation, 1.0)
    errors = [np.quantile(one, 0.9) for one in left_out_errors(seen, start).values()]
    return replace(fit_weights(seen, start), error=round(float(np.mean(errors)), 4) if errors else 0.5)


def left_out_errors(seen: Sequence[Seen], known: ExpectedAccuracy) -> dict[str, np.ndarray]:
    """|expected - true| of every frame of a group, by a fit on all other groups, which must exist; `known` as below.

    Groups without any right pixel are left in: what the network is not for has no accuracy to be off from.
    """
    errors = {}
    for group in sorted({one.group for one in seen if one.right}):
        others = [one for one in seen if one.group != group]
        columns = np.array([one[1:] for one in seen if one.group == group]).T
        if others:
            errors[group] = np.abs(fit_weights(others, known).at(*columns[:-1]) - columns[-1])
    return errors


def fit_weights(seen: Sequence[Seen], known: ExpectedAccuracy) -> ExpectedAccuracy:
    """`known` with the level and the weights of these frames; its costs and the scale of its layout stay."""
    level, confidence, score, layout = _weights(seen, known.layout_mean, known.layout_deviation)
    return replace(known, level=level, confidence=confidence, score=score, layout=layout)


def _weights(seen: Sequence[Seen], mean: float, deviation: float) -> tuple[float, float, float, float]:
    """Level and weights of the lowest mean cross-entropy; every group weighs the same."""
    confidence, score, layout, right = torch.tensor([one[1:] for one in seen], dtype=torch.float64).T
    sizes = Counter(one.group for one in seen)
    share = torch.tensor([1.0 / (len(sizes) * sizes[one.group]) for one in seen], dtype=torch.float64)
    sure = confidence.clamp(1 - SURE, SURE).logit()
    far, odd = softplus(score - 1), softplus((layout - mean) / deviation - 1)

    def loss(found: Tensor) -> Tensor:
        weights = softplus(found[1:])
        z = found[0] + weights[0] * sure - weights[1] * far - weights[2] * odd
        parts = binary_cross_entropy_with_logits(z, right, reduction="none")
        return (share * parts).sum() + RIDGE * (weights**2).sum()

    found = minimise(loss, torch.tensor([0.0, 0.5, 0.0, 0.0], dtype=torch.float64))
    level, weights = float(found[0]), softplus(found[1:]).tolist()
    return level, weights[0], weights[1], weights[2]


def minimise(loss: Callable[[Tensor], Tensor], start: Tensor) -> Tensor:
    """Returns the parameters of the lowest loss, by LBFGS from `start`."""
    parameters = start.clone().requires_grad_()
    search = torch.optim.LBFGS([parameters], max_iter=200, line_search_fn="strong_wolfe", tolerance_change=1e-9)

    def closure() -> Tensor:
        search.zero_grad()
        found = loss(parameters)
        found.backward()
        return found

    search.step(closure)
    return parameters.detach()
