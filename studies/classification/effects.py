"""Effect of a method, paired by picture; unpaired, 1,000 test pictures give accuracy to 1.3 points at best."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from steadyseg.studies.classification.matrix import Classifier
from steadyseg.studies.harness.findings import half_width
from steadyseg.studies.harness.per_picture import read_per_picture

OFF, FEW, MANY = 0, 2, 50
"""Passes whose pictures are kept: dropout off, and those that the papers compare."""


@dataclass(frozen=True)
class Side:
    """A kind of network and how many passes it makes."""

    model: str
    dropout: bool
    smoothing: bool
    passes: int = OFF

    def of_seed(self, record: dict[str, Any], seed: int) -> dict[str, Tensor] | None:
        """NLL and right (pictures,) of the network trained with this seed; None where it was not measured."""
        name = Classifier(self.model, self.dropout, self.smoothing, seed).name
        if name not in record:
            return None
        return read_per_picture(record[name]["pictures"][str(self.passes)])


PLAIN, SMOOTH = Side("resnet18", False, False), Side("resnet18", False, True)
MC, MC_SMOOTH = Side("resnet18", True, False, MANY), Side("resnet18", True, True, MANY)
EFFECTS = {
    "spatial smoothing, without dropout": (PLAIN, SMOOTH),
    "spatial smoothing, with MC dropout (N = 50)": (MC, MC_SMOOTH),
    "MC dropout (N = 50)": (PLAIN, MC),
    "both (N = 50)": (PLAIN, MC_SMOOTH),
    "MC dropout + smoothing at N = 2, against MC dropout at N = 50": (MC, Side("resnet18", True, True, FEW)),
    "VGG-16: both (N = 50)": (Side("vgg16", False, False), Side("vgg16", True, True, MANY)),
}
"""The rows (before, after) of each effect."""


@dataclass(frozen=True)
class Change:
    """A mean difference over pictures, and half the width of its 95 % interval."""

    mean: float
    half: float
    by_seed: list[float]


def changes(record: dict[str, Any], before: Side, after: Side, seeds: Iterable[int] = (0, 1)) -> dict[str, Change]:
    """Paired changes of "nll" and "right" over the seeds that have both sides; empty where none has.

    The interval is of the pictures (paired, averaged over the seeds first); what another training would give is in
    `by_seed`.
    """
    pairs = [(a, b) for seed in seeds if (a := before.of_seed(record, seed)) and (b := after.of_seed(record, seed))]
    found = {}
    for key in ("nll", "right") if pairs else ():
        differences = torch.stack([b[key] - a[key] for a, b in pairs])
        by_picture = differences.mean(0)
        found[key] = Change(float(by_picture.mean()), half_width(by_picture), differences.mean(1).tolist())
    return found
