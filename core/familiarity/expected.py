"""The expected accuracy of a frame: the share of right pixels, from mean confidence, familiarity score and layout.

    logit(expected) = level + confidence * logit(c) - score * softplus(s - 1) - layout * softplus(l - 1)

c is the mean confidence of the calibrated maps. s is the familiarity score, in standard deviations of the training
domain. l is the layout, how unusual the predicted classes are at their heights, in standard deviations too. All
weights are 0 or more, so the expected accuracy rises with confidence, and falls where features or layout are unusual.
The entropy alone can be lower on noise than on the training domain (docs/records/familiarity).
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np

from steadyseg.core.options import is_number

if TYPE_CHECKING:
    from torch import Tensor

QUARTERS = 4
"""Bands of rows of a picture, from the top, with a table of classes each."""
STRIDE = 4
"""Every so many rows and columns of the label map count in the layout."""
RARE_SHARE = 1e-3
"""Added to the share of every class in a band, so that a class that never stood there has a finite cost."""
SURE = 0.98
"""Mean confidences are clipped to 1 - `SURE`..`SURE`."""
DOUBTFUL = 0.5
"""Below this expected accuracy, few labels can be trusted."""
RIDGE = 1e-4
MAX_COST = 100.0


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


@dataclass(frozen=True)
class ExpectedAccuracy:
    """A fitted expected accuracy."""

    level: float
    confidence: float
    score: float
    layout: float
    costs: tuple[tuple[float, ...], ...]
    """(QUARTERS, K) nats: -ln of the share of each class in each band of rows, over frames of the training domain."""
    layout_mean: float
    layout_deviation: float
    error: float
    """90th percentile of |expected - true| over frames of groups that a fit did not see, 0..1."""

    @classmethod
    def read(cls, values: Mapping[str, Any]) -> Self:
        """Reads a record; ValueError for what cannot be used."""
        costs = tuple(tuple(row) for row in values["costs"])
        numbers = {name: values[name] for name in cls.__dataclass_fields__ if name != "costs"}
        least = {"level": -1e6, "layout_mean": 0.0, "layout_deviation": 1e-6}
        if not all(is_number(one, least.get(name, 0.0), 1e6) for name, one in numbers.items()):
            raise ValueError("expected cannot be used")
        if len(costs) != QUARTERS or not all(
            len(row) == len(costs[0]) > 0 and all(is_number(one, 0, MAX_COST) for one in row) for row in costs
        ):
            raise ValueError("the costs of expected cannot be used")
        return cls(costs=costs, **numbers)

    def record(self) -> dict[str, Any]:
        """The entry of a checkpoint's record."""
        return {name: round(one, 6) if isinstance(one, float) else one for name, one in asdict(self).items()}

    def of(self, confidence: float, score: float, label: np.ndarray) -> float:
        """Expected accuracy, 0..1, of a frame with this mean confidence, score and label map (H, W) uint8."""
        return float(self.at(confidence, score, layout_cost(label, np.array(self.costs))))

    def at(self, confidence: Any, score: Any, layout: Any) -> Any:
        """As `of`, with the cost of the layout; numbers or arrays (N,)."""
        sure = np.clip(confidence, 1 - SURE, SURE)
        unusual = (np.asarray(layout) - self.layout_mean) / self.layout_deviation
        z = self.level + self.confidence * np.log(sure / (1 - sure))
        z = z - self.score * np.logaddexp(0.0, np.asarray(score) - 1) - self.layout * np.logaddexp(0.0, unusual - 1)
        return 1.0 / (1.0 + np.exp(-z))


def layout_cost(label: np.ndarray, costs: np.ndarray) -> float:
    """Mean cost of the classes of a label map (H, W) uint8 at their heights; `costs` (QUARTERS, K)."""
    bands = np.arange(0, len(label), STRIDE) * QUARTERS // len(label)
    return float(costs[bands[:, None], label[::STRIDE, ::STRIDE]].mean())


def class_costs(labels: Sequence[np.ndarray], classes: int) -> np.ndarray:
    """(QUARTERS, K) costs of the predicted label maps of the training domain."""
    counts = np.zeros((QUARTERS, classes))
    for label in labels:
        bands = np.arange(0, len(label), STRIDE) * QUARTERS // len(label)
        small = label[::STRIDE, ::STRIDE]
        for band in range(QUARTERS):
            counts[band] += np.bincount(small[bands == band].ravel(), minlength=classes)[:classes]
    shares = counts / np.maximum(counts.sum(1, keepdims=True), 1) + RARE_SHARE
    return np.asarray(-np.log(shares / shares.sum(1, keepdims=True)))


def fit_expected(seen: Sequence[Seen], costs: np.ndarray, home: Sequence[float]) -> ExpectedAccuracy:
    """Fits the weights by cross-entropy. `home`: layout costs of frames of the training domain. The error is measured
    on each group by a fit on all other groups, where there are two or more."""
    mean, deviation = float(np.mean(home)), max(float(np.std(home)), 1e-3)
    table = tuple(tuple(round(float(one), 4) for one in row) for row in costs)

    def fit(rows: Sequence[Seen]) -> ExpectedAccuracy:
        level, confidence, score, layout = _weights(rows, mean, deviation)
        return ExpectedAccuracy(level, confidence, score, layout, table, mean, deviation, 1.0)

    groups = sorted({one.group for one in seen})
    errors: list[np.ndarray] = []
    for group in groups if len(groups) > 1 else ():
        known = fit([one for one in seen if one.group != group])
        columns = np.array([one[1:] for one in seen if one.group == group]).T
        if columns[-1].any():  # pictures that it is not for have no accuracy to be off from
            errors.append(np.abs(known.at(*columns[:-1]) - columns[-1]))
    error = float(np.mean([np.quantile(one, 0.9) for one in errors])) if errors else 0.5
    return replace(fit(seen), error=round(error, 4))


def _weights(seen: Sequence[Seen], mean: float, deviation: float) -> tuple[float, float, float, float]:
    """Level and weights of the lowest mean cross-entropy; every group weighs the same."""
    import torch
    from torch.nn.functional import binary_cross_entropy_with_logits, softplus

    column = {
        name: torch.tensor([getattr(one, name) for one in seen], dtype=torch.float64) for name in Seen._fields[1:]
    }
    sizes = {group: sum(one.group == group for one in seen) for group in {one.group for one in seen}}
    share = torch.tensor([1.0 / (len(sizes) * sizes[one.group]) for one in seen], dtype=torch.float64)
    sure = column["confidence"].clamp(1 - SURE, SURE).logit()
    far, odd = softplus(column["score"] - 1), softplus((column["layout"] - mean) / deviation - 1)

    def loss(found: "Tensor") -> "Tensor":
        weights = softplus(found[1:])
        z = found[0] + weights[0] * sure - weights[1] * far - weights[2] * odd
        parts = binary_cross_entropy_with_logits(z, column["right"], reduction="none")
        return (share * parts).sum() + RIDGE * (weights**2).sum()

    found = minimise(loss, torch.tensor([0.0, 0.5, 0.0, 0.0], dtype=torch.float64))
    level, weights = float(found[0]), softplus(found[1:]).tolist()
    return level, weights[0], weights[1], weights[2]


def minimise(loss: Any, start: "Tensor") -> "Tensor":
    """Returns the parameters of the lowest loss, by LBFGS from `start`."""
    import torch

    parameters = start.clone().requires_grad_()
    search = torch.optim.LBFGS([parameters], max_iter=200, line_search_fn="strong_wolfe", tolerance_change=1e-9)

    def closure() -> Any:
        search.zero_grad()
        found = loss(parameters)
        found.backward()
        return found

    search.step(closure)
    return parameters.detach()
