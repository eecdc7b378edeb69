"""Spatial covariance of a feature map and its correlation length: the distance over which two points vary together."""

import math
from itertools import pairwise

import torch
from torch import Tensor

from steadyseg.core.errors import InputError


class SpatialCovariance:
    """The covariance of points by their offset, averaged over positions, samples and channels; zero padding around.

    The mean of each channel over all positions of a batch is taken off first. Offsets reach `reach` points each way.
    """

    def __init__(self, reach: int) -> None:
        self.reach = reach
        self._sum: Tensor | None = None
        self._weight = 0.0

    def add(self, maps: Tensor) -> None:
        """(B, C, H, W); InputError for a map of one point."""
        batch, channels, height, width = maps.shape
        if height * width < 2:
            raise InputError("a map of one point has no covariance in space")
        x = maps.detach().double()
        x = x - x.mean((0, 2, 3), keepdim=True)
        power = torch.zeros(2 * height, width + 1, dtype=torch.float64)
        for sample in x:  # twice the size, so that offsets do not wrap around
            power += (torch.fft.rfft2(sample, s=(2 * height, 2 * width)).abs() ** 2).sum(0).cpu()
        products = torch.fft.irfft2(power, s=(2 * height, 2 * width))
        found = torch.full((self.reach + 1, 2 * self.reach + 1), torch.nan, dtype=torch.float64)
        for down in range(min(self.reach, height - 1) + 1):
            for across in range(-min(self.reach, width - 1), min(self.reach, width - 1) + 1):
                pairs = (height - down) * (width - abs(across))
                found[down, across + self.reach] = products[down, across % (2 * width)] / (pairs * batch * channels)
        self._sum = found * batch if self._sum is None else self._sum + found * batch
        self._weight += batch

    @property
    def variance(self) -> float:
        """Variance: the covariance at offset 0."""
        assert self._sum is not None
        return float(self._sum[0, self.reach]) / self._weight

    def correlation(self) -> Tensor:
        """(reach + 1, 2 reach + 1): covariance over variance; row 0 is offset 0 downwards, column `reach` offset 0
        across."""
        assert self._sum is not None
        return self._sum / self._sum[0, self.reach] if self.variance > 0 else torch.full_like(self._sum, torch.nan)

    def along_axes(self) -> list[float]:
        """Correlation by distance 0, 1, ... points: the mean of downwards and across, as far as both are known."""
        found = self.correlation()
        both = torch.stack([found[:, self.reach], found[0, self.reach :]]).mean(0)
        known = both[: int((~both.isnan()).long().cumprod(0).sum())]
        return [float(value) for value in known]

    def length(self) -> float | None:
        """The distance in points at which the correlation falls below 1/e, linear in between; None where it does
        not."""
        values = self.along_axes()
        for distance, (now, then) in enumerate(pairwise(values)):
            if then < 1 / math.e:
                return distance + (now - 1 / math.e) / (now - then)
        return None
