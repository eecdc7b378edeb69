"""Class means under one shared covariance, and the covariance of whole frames: computed in one pass in O(C^2) memory.

Mahalanobis distance to the nearest class mean (Lee et al. 2018, arXiv 1807.03888). Neighbouring pixels repeat each
other, so the covariance is shrunk as if there were as many samples as frames (OAS, Chen et al. 2010, Eq. 23).
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from steadyseg.core.errors import InputError


@dataclass(frozen=True)
class Gaussians:
    """The whitening of features: y = matrix @ (x - mean) has the unit matrix as its covariance within classes."""

    matrix: Tensor
    """(C, C)"""
    mean: Tensor
    """(C,) of all samples."""
    centres: Tensor
    """(K', C) whitened means of the classes that were seen."""
    shrinkage: float
    """Share of the unit matrix in the covariance, 0..1."""
    frames: int


class GaussianSums:
    """Sums over samples of known classes; call `update` for every frame, then `fit`."""

    def __init__(self, channels: int, classes: int) -> None:
        self.counts = torch.zeros(classes, dtype=torch.float64)
        self.sums = torch.zeros(classes, channels, dtype=torch.float64)
        self.products = torch.zeros(channels, channels, dtype=torch.float64)
        self.frames = 0

    def update(self, features: Tensor, labels: Tensor, frames: int = 1) -> None:
        """Adds features (N, C) of `frames` frames with labels (N,), class ids; those outside 0..K-1 are void.

        InputError for NaN and infinity.
        """
        kept = (labels >= 0) & (labels < len(self.counts))
        x, ids = features[kept].double().cpu(), labels[kept].long().cpu()
        if not torch.isfinite(x).all():
            raise InputError("the network's features hold NaN or infinite values; no statistics can be made of them")
        self.counts += torch.bincount(ids, minlength=len(self.counts))
        self.sums.index_add_(0, ids, x)
        self.products += x.T @ x
        self.frames += frames

    def fit(self) -> Gaussians:
        """Returns the Gaussians; InputError where no sample was added."""
        total = self.counts.sum()
        if total == 0:
            raise InputError("no labelled pixel was seen, so there are no class means")
        seen = self.counts > 0
        counts, sums = self.counts[seen], self.sums[seen]
        means = sums / counts[:, None]
        within = (self.products - (means * counts[:, None]).T @ means) / total
        covariance, shrinkage = shrink(within, self.frames)
        matrix, mean = whitening_matrix(covariance), sums.sum(0) / total
        return Gaussians(matrix, mean, (means - mean) @ matrix.T, shrinkage, self.frames)


def shrink(covariance: Tensor, samples: int) -> tuple[Tensor, float]:
    """The oracle approximating shrinkage towards tr(S) / C times the unit matrix, and the share of this matrix. The
    share of a single sample is 1."""
    size = covariance.shape[0]
    trace, square = torch.trace(covariance), (covariance**2).sum()
    spread = (samples + 1 - 2 / size) * (square - trace**2 / size)
    wanted = (1 - 2 / size) * square + trace**2
    share = 1.0 if samples < 2 or spread <= wanted else float(wanted / spread)
    unit = torch.eye(size, dtype=covariance.dtype) * (trace / size)
    return (1 - share) * covariance + share * unit, share


def whitening_matrix(covariance: Tensor) -> Tensor:
    """W with W S W^T = 1, symmetric. Directions without variance (a channel that is always 0) count as barely
    varying."""
    values, vectors = torch.linalg.eigh(covariance)
    floor = values[-1].clamp_min(1e-12) * 1e-6
    return (vectors * values.clamp_min(floor).rsqrt()) @ vectors.T
