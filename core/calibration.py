"""Post-hoc calibration: one temperature for the logits (Guo et al. 2017, arXiv 1706.04599), found in one pass over a stream.

The whole grid is smoothed and scored side by side, so the temperature is fitted with the smoothing that will be used, no logits
are kept, and void samples do not count. One temperature keeps the arg-max of a single softmax; that of a mean of tempered
softmaxes (passes, frames) can flip, so flips are counted.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from core.errors import InputError
from core.metrics import SMALLEST_PROBABILITY, StreamingMetrics

RATIO = 1.2
GRID = tuple(RATIO**exponent for exponent in range(-4, 8))
"""0.48 to 3.6; a parabola through the best three refines it."""
UNTEMPERED = GRID.index(1.0)
FEWEST_PIXELS = 100
"""Labelled pixels below which nothing is fitted."""


@dataclass(frozen=True)
class TemperatureFit:
    """What the scan found."""

    temperature: float
    nll: float
    """Mean over non-void pixels in nats, at temperature 1."""
    nll_calibrated: float
    """At the fitted temperature (the parabola's value)."""
    ece: float
    """At temperature 1, 10 bins."""
    flips: float
    """Share of the pixels whose arg-max is another than at temperature 1, at the grid's nearest temperature."""
    pixels: int


class TemperatureScan:
    """Sums the NLL of every temperature of the grid, and the flips against temperature 1."""

    def __init__(self, num_classes: int, void: int) -> None:
        self.void = void
        self._untempered = StreamingMetrics(num_classes, void)
        self._nll = torch.zeros(len(GRID), dtype=torch.float64)
        self._flips = torch.zeros(len(GRID), dtype=torch.int64)
        self._pixels = 0

    def update(self, probs: Tensor, labels: Tensor) -> None:
        """probs (T, K, ...) at the grid's temperatures, labels (...) integer ids of the same frame."""
        labels = labels.long()
        kept = (labels != self.void).flatten().nonzero().squeeze(1)
        index = labels.masked_fill(labels == self.void, 0)[None, None].expand(len(probs), 1, *labels.shape)
        p_true = probs.gather(1, index).flatten(1)[:, kept]
        self._nll -= p_true.clamp_min(SMALLEST_PROBABILITY).log().sum(1, dtype=torch.float64).cpu()
        # A flip: the label of temperature 1 is no longer the likeliest (10 times cheaper than every temperature's arg-max).
        decided = probs[UNTEMPERED].argmax(0)[None, None].expand(len(probs), 1, *labels.shape)
        flipped = probs.gather(1, decided)[:, 0] < probs.amax(1)
        self._flips += flipped.flatten(1)[:, kept].sum(1).cpu()
        self._pixels += len(kept)
        self._untempered.update(probs[UNTEMPERED][None], labels[None])

    def fit(self) -> TemperatureFit:
        """The temperature of least NLL; InputError where there is too little to fit, or where it lies beyond the grid."""
        if self._pixels < FEWEST_PIXELS:
            raise InputError(
                f"{self._pixels} labelled pixels are too few to fit a temperature; {FEWEST_PIXELS} or more are needed"
            )
        nll = (self._nll / self._pixels).tolist()
        best = min(range(len(GRID)), key=nll.__getitem__)
        if best in (0, len(GRID) - 1):
            raise InputError(
                f"the best temperature lies beyond the grid {GRID[0]:.2f}..{GRID[-1]:.2f}: do these labels belong to these "
                "images and classes?"
            )
        offset, lowest = _vertex(*nll[best - 1 : best + 2])
        temperature = GRID[best] * RATIO**offset
        flips = int(self._flips[best]) / self._pixels
        ece = self._untempered.result()["ece"]
        return TemperatureFit(temperature, nll[UNTEMPERED], lowest, ece, flips, self._pixels)


def grid_tensor(device: torch.device) -> Tensor:
    """(T, 1, 1, 1): logits (1, K, h, w) divided by it are the whole grid as a batch."""
    return torch.tensor(GRID, device=device).view(-1, 1, 1, 1)


def _vertex(left: float, middle: float, right: float) -> tuple[float, float]:
    """(offset in -0.5..0.5 steps, value) of the parabola through three equidistant points, the middle one lowest."""
    bend = left - 2.0 * middle + right
    if bend <= 0.0:
        return 0.0, middle
    offset = 0.5 * (left - right) / bend
    return offset, middle - 0.25 * (left - right) * offset
