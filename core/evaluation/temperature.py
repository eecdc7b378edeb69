"""Post-hoc calibration: one temperature for the logits (Guo et al. 2017, arXiv 1706.04599), found in one pass over a
stream.

The whole grid is smoothed and scored side by side. So the temperature is fitted with the smoothing that will be used,
and no logits are kept. Void samples do not count. One temperature keeps the arg-max of a single softmax. The arg-max of
a mean of tempered softmaxes (passes, frames) can flip, so flips are counted.
"""

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from steadyseg.core.errors import InputError
from steadyseg.core.evaluation.coarse import of_label, settle
from steadyseg.core.evaluation.metrics import SMALLEST_PROBABILITY, StreamingMetrics, kept_positions

RATIO = 1.2
GRID = tuple(RATIO**exponent for exponent in range(-4, 8))
"""0.48 to 3.6; a parabola through the best three refines it."""
WIDE_GRID = tuple(RATIO**exponent for exponent in range(-8, 16))
"""0.23 to 15.4, for classifiers, whose predictions are small, and where GRID is too narrow. A network that learned few
images by heart needs 4 and more, a hardly trained network less than 0.48."""
UNSURE = (
    "the network is far less sure than it is right, as one that is hardly trained, or on images that it was trained "
    "on; train it longer, and fit on other images"
)
WORTHLESS = (
    "equal probabilities for all classes are nearly as good as the network's; train it longer, and check that these "
    "labels are of these images and classes"
)
MIN_PIXELS = 100
"""A fit needs this many labelled pixels, or images of a classifier."""

FEW = 50
"""Pictures of a fit that may make a temperature worse than none."""


class BeyondGrid(InputError):
    """Error of a fit whose best temperature lies outside the grid."""


@dataclass(frozen=True)
class TemperatureFit:
    """The temperature of the lowest NLL."""

    temperature: float
    nll: float
    """Mean over non-void pixels in nats, at temperature 1."""
    ece: float
    """At temperature 1, 10 bins."""
    flips: float
    """Share of the pixels whose arg-max at the grid's nearest temperature differs from the arg-max at temperature 1."""
    pixels: int


class TemperatureScan:
    """Sums the NLL of every temperature of the grid, and the flips against temperature 1."""

    def __init__(self, num_classes: int, void: int | None, grid: tuple[float, ...] = GRID) -> None:
        """`void` None: the samples are a classifier's images, and every one counts."""
        self.void, self.grid, self._untempered_at = void, grid, grid.index(1.0)
        self._untempered = StreamingMetrics(num_classes, void)
        self._nll = torch.zeros(len(grid), dtype=torch.float64)
        self._flips = torch.zeros(len(grid), dtype=torch.int64)
        self._pixels = 0

    def update(self, probs: Tensor, labels: Tensor) -> None:
        """probs (T, K, ...) at the grid's temperatures, labels (...) integer ids or int32 sets of the same frame."""
        settled = settle(probs[self._untempered_at][None], labels[None], self.void)
        kept = kept_positions(settled.ids, self.void)
        p_true = of_label(settled, probs, self.void).flatten(1)[:, kept]
        self._nll -= p_true.clamp_min(SMALLEST_PROBABILITY).log().sum(1, dtype=torch.float64).cpu()
        # A pixel flips if its label at temperature 1 is no longer the likeliest. This comparison is 10 times cheaper
        # than an arg-max at every temperature, and `max` returns the label in a fifth of the time of `argmax`.
        decided = probs[self._untempered_at].max(0).indices[None, None].expand(len(probs), 1, *labels.shape)
        flipped = probs.gather(1, decided)[:, 0] < probs.amax(1)
        self._flips += flipped.flatten(1)[:, kept].sum(1).cpu()
        self._pixels += len(kept)
        self._untempered.update(probs[self._untempered_at][None], labels[None])

    def fit(self) -> TemperatureFit:
        """The temperature of the lowest NLL. BeyondGrid if it lies outside the grid, InputError for too few samples."""
        if self._pixels < MIN_PIXELS:
            raise InputError(
                f"{self._pixels} labelled {'images' if self.void is None else 'pixels'} are too few to fit a "
                f"temperature; {MIN_PIXELS} or more are needed"
            )
        nll = (self._nll / self._pixels).tolist()
        grid = self.grid
        best = min(range(len(grid)), key=nll.__getitem__)
        if best in (0, len(grid) - 1):
            accuracy = self._untempered.result()["accuracy"]
            raise BeyondGrid(
                f"the best temperature lies {'above' if best else 'below'} {grid[best]:.2f} at an accuracy of "
                f"{accuracy:.1%}: {UNSURE if not best else WORTHLESS}"
            )
        temperature = grid[best] * RATIO ** _vertex(*nll[best - 1 : best + 2])
        flips = int(self._flips[best]) / self._pixels
        ece = self._untempered.result()["ece"]
        return TemperatureFit(temperature, nll[self._untempered_at], ece, flips, self._pixels)


def describe_extreme(temperature: float) -> str:
    """Returns one line that explains a temperature outside GRID; empty for a temperature inside."""
    if temperature < GRID[0]:
        return f"temperature {temperature:.2f}: {UNSURE}"
    if temperature > GRID[-1]:
        return (
            f"temperature {temperature:.2f}: the network is far surer than it is right, as one that learned few "
            "images by heart; label more images, or train it shorter"
        )
    return ""


def describe_few(record: dict[str, Any]) -> str:
    """Returns a warning that the fit had few pictures; an empty text if it had enough, or if there was no fit."""
    note = f"{record.get('frames')} pictures are few: of 5 fits on {FEW}, 3 raised the ECE (docs/records/reliability)"
    return note if 0 < record.get("frames", 0) <= FEW else ""


def grid_tensor(device: torch.device, grid: tuple[float, ...] = GRID) -> Tensor:
    """The grid as (T, 1, 1, 1): logits (1, K, h, w) divided by it are a batch of all temperatures."""
    return torch.tensor(grid, device=device).view(-1, 1, 1, 1)


def temperature_record(fit: TemperatureFit, after: dict[str, Any]) -> dict[str, Any]:
    """The record of a fit: NLL and ECE before it (on every second row and column) and after it (on all pixels)."""
    return {
        "temperature": round(fit.temperature, 4),
        "flips": fit.flips,
        "nll_before": fit.nll,
        "nll_after": after["nll"],
        "ece_before": fit.ece,
        "ece_after": after["ece"],
    }


def _vertex(left: float, middle: float, right: float) -> float:
    """Fits a parabola to three equidistant points, of which the middle one is the lowest. Returns the offset of its
    lowest point from the middle, -0.5..0.5 steps."""
    bend = left - 2.0 * middle + right
    return 0.5 * (left - right) / bend if bend > 0.0 else 0.0
