"""The outcome of a statement that is compared with figures, and the interval of a paired difference."""

import math
from dataclasses import dataclass

from torch import Tensor

Z95 = 1.96
"""Standard errors on either side of a mean that hold 95 % of a normal distribution."""


@dataclass(frozen=True)
class Finding:
    """The outcome of one statement."""

    figures: str
    holds: int
    of: int
    """Number of comparisons."""


def half_width(differences: Tensor) -> float:
    """Half of the 95 % interval of the mean of independent differences (N,), by the normal distribution."""
    return Z95 * float(differences.std()) / math.sqrt(len(differences))
