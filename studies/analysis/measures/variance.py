"""Variance of feature maps: over positions, over dropout draws, and over both at once (arXiv 2105.12639 Fig. 5,
2202.06709).

Of every sample and channel first, then the mean over samples and channels; unbiased, as published. `positions` is of
one draw. `draws` is of each point over the draws. `both` is of all points of all draws together. `averaged` is over
positions, of the mean of the draws: what an ensemble of them leaves.
"""

from torch import Tensor

from steadyseg.core.errors import InputError


class DrawVariance:
    """The moments of one unit's maps over draws of the same pictures; memory does not grow with the draws."""

    def __init__(self) -> None:
        self.count = 0
        self._positions = 0.0
        self._sum: Tensor
        self._squares: Tensor

    def add(self, maps: Tensor) -> None:
        """(B, C, H, W), the same pictures in every call. InputError for a map of one point."""
        if maps.shape[-2] * maps.shape[-1] < 2:
            raise InputError("a map of one point has no variance over positions")
        maps = maps.detach().double()
        self._positions += float(maps.var((-2, -1)).mean())
        if not self.count:
            # Of the first draw: a sum of squares of what is left loses no digits to a large mean.
            self._first, self._sum, self._squares = maps, maps * 0, maps * 0
        else:
            change = maps - self._first
            self._sum += change
            self._squares += change * change
        self.count += 1

    def result(self) -> dict[str, float | None]:
        """Means over samples and channels; draws and what follows from them are None of a single draw."""
        found: dict[str, float | None] = {"positions": self._positions / self.count}
        if self.count < 2:
            return found | {"draws": None, "both": None, "averaged": None}
        n, mean = self.count, self._first + self._sum / self.count
        within = (self._squares - self._sum * self._sum / n).clamp(min=0.0)  # sum of squares around each point's mean
        points = mean.shape[-2] * mean.shape[-1]
        around = mean - mean.mean((-2, -1), keepdim=True)
        total = within.sum((-2, -1)) + n * (around * around).sum((-2, -1))
        return found | {
            "draws": float((within / (n - 1)).mean()),
            "both": float((total / (n * points - 1)).mean()),
            "averaged": float(mean.var((-2, -1)).mean()),
        }
