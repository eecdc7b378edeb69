"""Fourier analysis of feature maps: how much of each frequency is in them (arXiv 2202.06709, Fig. 2a and 8).

Each sample and channel is transformed over space (F). The mean of ln(|F| + 1e-6) over samples and channels is read
along the diagonal from the centre (frequency 0) to the corner. What is reported is relative to the entry at frequency 0
of the same map, so a constant factor does not count. Entry i of a square map of side h lies at 2 i / h (in units of
pi). The last entry is just below pi: 1 - 2 / h for an even side, 1 - 1 / h for an odd side. The published plots spread
the entries evenly over 0..1 instead. Where a map is no square, the diagonal has the frequencies of the shorter side,
and takes the nearest frequencies of the longer side.
"""

import torch
from torch import Tensor

from steadyseg.core.errors import InputError

FLOOR = 1e-6
"""Added before the logarithm, as published."""


def frequencies(height: int, width: int) -> Tensor:
    """(n,) of the diagonal, in units of pi: 0, 2 / h, 4 / h, ... below 1 for h, the shorter side. InputError below 2
    points."""
    side = min(height, width)
    if side < 2:
        raise InputError(f"a map of {width}x{height} has one frequency; Fourier analysis needs 2x2 points or more")
    return 2.0 * torch.arange((side + 1) // 2, dtype=torch.float64) / side


def log_amplitude(maps: Tensor) -> Tensor:
    """(B, C, H, W) -> (n,) mean over samples and channels of ln(|F| + 1e-6) along the diagonal; entry 0 is frequency
    0."""
    height, width = maps.shape[-2:]
    places = frequencies(height, width)
    rows, columns = ((places * side / 2).round().long() for side in (height, width))
    spectrum = torch.fft.fft2(maps.double())[..., rows, columns]  # frequencies 0..side/2 come first, unshifted
    return torch.log(spectrum.abs() + FLOOR).mean((0, 1))
