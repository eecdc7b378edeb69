"""Figures of a classifier picture by picture, kept for paired differences between networks."""

from typing import Any

import torch
from torch import Tensor

from steadyseg.core.evaluation.metrics import SMALLEST_PROBABILITY
from steadyseg.core.prediction import Prediction


class PerPicture:
    """NLL and correctness of every picture."""

    def __init__(self) -> None:
        self._nll: list[float] = []
        self._right: list[bool] = []

    def add(self, prediction: Prediction, labels: Tensor) -> None:
        """Adds the prediction (B, K) of a batch and its labels (B,)."""
        probs = prediction.probs.float().cpu()
        true = probs.gather(1, labels[:, None])[:, 0].clamp_min(SMALLEST_PROBABILITY)
        self._nll.extend((-true.log()).tolist())
        self._right.extend((probs.argmax(1) == labels).tolist())

    def record(self) -> dict[str, str]:
        """NLLs with three digits and correctness (0 or 1) as a line of text each."""
        return {
            "nll": " ".join(f"{value:.3f}" for value in self._nll),
            "right": "".join("01"[value] for value in self._right),
        }


def read_per_picture(kept: dict[str, Any]) -> dict[str, Tensor]:
    """NLL and correctness (pictures,) from the lines of text."""
    return {
        "nll": torch.tensor([float(value) for value in kept["nll"].split()], dtype=torch.float64),
        "right": torch.tensor([int(value) for value in kept["right"]], dtype=torch.float64),
    }
