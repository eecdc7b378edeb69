"""Metrics of several networks and methods at once over the same pictures, as rows of a report."""

from collections.abc import Iterable
from typing import Any

from torch import Tensor

from steadyseg.core.evaluation.metrics import StreamingMetrics
from steadyseg.core.method import Method
from steadyseg.studies.harness.target import TargetNetwork, at_size_of

Row = dict[str, Any]
"""A row of a report: `model`, `mode` and `samples` beside its metrics."""


def title_of(row: Row) -> str:
    """The network and the method of a row in a few characters."""
    return f"{row['model']} {Method(row['mode'], row['samples'])}"


def titles_of(rows: Iterable[Row]) -> list[str]:
    """The titles of the rows in their order, each title once."""
    return list(dict.fromkeys(map(title_of, rows)))


class Tally:
    """Streaming metrics by network and method."""

    def __init__(self, subjects: Iterable[TargetNetwork]) -> None:
        self._dense = {subject.name: subject.is_segmentation for subject in subjects}
        self._metrics: dict[tuple[str, Method], StreamingMetrics] = {}

    def add(self, subject: TargetNetwork, method: Method, probs: Tensor, labels: Tensor) -> None:
        """probs (B, K, ...) at the network's size, labels (B, ...) at the pictures'."""
        key = (subject.name, method)
        if key not in self._metrics:
            self._metrics[key] = StreamingMetrics(len(subject), subject.meta.classes.void)
        self._metrics[key].update(at_size_of(probs, labels), labels)

    def rows(self, **about: Any) -> list[Row]:
        """One for each network and method; `about` says what it is a row of."""
        return [
            {
                "model": name,
                "mode": method.mode,
                "samples": method.samples,
                **about,
                **figures(metrics, self._dense[name]),
            }
            for (name, method), metrics in self._metrics.items()
        ]


def figures(metrics: StreamingMetrics, is_segmentation: bool) -> Row:
    """Metrics of a row."""
    result = metrics.result()
    row = {
        "accuracy": result["accuracy"],
        "error": 1.0 - result["accuracy"],
        "nll": result["nll"],
        "ece": result["ece"],
        "mean_confidence": result["accuracy"] + result["ece_signed"],
    }
    return row | ({"miou": result["miou"]} if is_segmentation else {})
