"""Figures of a classifier picture by picture, kept for paired differences between networks."""

from collections.abc import Iterable, Iterator
from typing import Any

import torch
from torch import Tensor

from steadyseg.core.evaluation.metrics import SMALLEST_PROBABILITY
from steadyseg.core.prediction import Prediction


class PerPicture:
    """NLL and correctness of every picture, for each of the numbers of passes in `sizes` (0: dropout off)."""

    def __init__(self, sizes: Iterable[int]) -> None:
        self.sizes = set(sizes)
        self._nll: dict[int, list[float]] = {}
        self._right: dict[int, list[bool]] = {}

    def watch(self, predictions: Iterable[Prediction], labels: Tensor, sizes: Iterable[int]) -> Iterator[Prediction]:
        """Passes the predictions (B, K) on; `sizes` says how many passes each averages."""
        for size, prediction in zip(sizes, predictions, strict=True):
            if size in self.sizes:
                self.add(size, prediction, labels)
            yield prediction

    def add(self, size: int, prediction: Prediction, labels: Tensor) -> None:
        """Adds a batch: its prediction (B, K) by so many passes, and its labels (B,)."""
        probs = prediction.probs.float().cpu()
        true = probs.gather(1, labels[:, None])[:, 0].clamp_min(SMALLEST_PROBABILITY)
        self._nll.setdefault(size, []).extend((-true.log()).tolist())
        self._right.setdefault(size, []).extend((probs.argmax(1) == labels).tolist())

    def record(self) -> dict[str, dict[str, str]]:
        """The figures by number of passes; NLLs with three digits and correctness (0 or 1) as a line of text each."""
        return {
            str(size): {
                "nll": " ".join(f"{value:.3f}" for value in self._nll[size]),
                "right": "".join("01"[value] for value in self._right[size]),
            }
            for size in self._nll
        }


def read_per_picture(kept: dict[str, Any]) -> dict[str, Tensor]:
    """NLL and correctness (pictures,) from the lines of text of one number of passes."""
    return {
        "nll": torch.tensor([float(value) for value in kept["nll"].split()], dtype=torch.float64),
        "right": torch.tensor([int(value) for value in kept["right"]], dtype=torch.float64),
    }
