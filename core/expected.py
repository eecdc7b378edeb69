"""The expected accuracy of a frame: the share of right pixels, from mean confidence, familiarity score and layout.

    logit(expected) = level + confidence * logit(c) - score * softplus(s - 1) - layout * softplus(l - 1)

c is the mean confidence of the calibrated maps. s is the familiarity score, in standard deviations of the training
domain. l is the layout, how unusual the predicted classes are at their heights, in standard deviations too. All
weights are 0 or more, so the expected accuracy rises with confidence, and falls where features or layout are unusual.
The entropy alone can be lower on noise than on the training domain (docs/records/familiarity).
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Self

import numpy as np

from steadyseg.core.options import is_number

QUARTERS = 4
"""Bands of rows of a picture, from the top, with a table of classes each."""
STRIDE = 4
"""Every so many rows and columns of the label map count in the layout."""
SURE = 0.98
"""Mean confidences are clipped to 1 - `SURE`..`SURE`."""
DOUBTFUL = 0.5
"""Below this expected accuracy, few labels can be trusted."""
MAX_COST = 100.0
LOST_A_FRAME = 0.0029
"""Share of the accuracy that maps lose for each source frame that they are carried: the mean of virtual cameras
(0.0009) and of drawn streets (0.0050). On val, which had no part in it, 0.0025 and 0.0028 (docs/records/results)."""


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


def read_expected(values: Mapping[str, Any]) -> ExpectedAccuracy | None:
    """Reads a record; None for an empty one, ValueError for what cannot be used."""
    return ExpectedAccuracy.read(values) if values else None


def is_expected(values: Any, classes: int) -> bool:
    """True for a record of a network of so many classes, and for an empty one."""
    try:
        return not (found := read_expected(values)) or len(found.costs[0]) == classes
    except (KeyError, TypeError, ValueError):
        return False


def carried_loss(age: int) -> float:
    """Share of the expected accuracy of a frame that its maps lose where they are carried over `age` source frames."""
    return min(1.0, LOST_A_FRAME * age)


def layout_cost(label: np.ndarray, costs: np.ndarray) -> float:
    """Mean cost of the classes of a label map (H, W) uint8 at their heights; `costs` (QUARTERS, K)."""
    return float(costs[bands(len(label))[:, None], label[::STRIDE, ::STRIDE]].mean())


def bands(rows: int) -> np.ndarray:
    """The band, 0..`QUARTERS` - 1, of every `STRIDE`-th row of a picture."""
    return np.arange(0, rows, STRIDE) * QUARTERS // rows
