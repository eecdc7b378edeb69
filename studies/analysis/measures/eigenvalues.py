"""The largest eigenvalues of a symmetric matrix that is known by its products, by power iteration with deflation."""

from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

from steadyseg.core.errors import InputError
from steadyseg.studies.analysis.measures.curvature import orthogonal_to


class Symmetric(Protocol):
    """A symmetric matrix by its products."""

    def __matmul__(self, vector: Tensor) -> Tensor: ...


@dataclass(frozen=True)
class Eigenpair:
    """One eigenvalue with its sign and its eigenvector."""

    value: float
    vector: Tensor
    """(P,) of length 1."""
    iterations: int
    residual: float
    """|H v - value v| / |value|: the error of the pair."""


def top_eigenpairs(
    matrix: Symmetric,
    like: Tensor,
    count: int,
    *,
    iterations: int = 100,
    tolerance: float = 1e-3,
    seed: int = 0,
) -> list[Eigenpair]:
    """The `count` eigenvalues of largest magnitude, in the order found; `like` (P,) says size, dtype and device.

    A vector is multiplied by the matrix and made orthogonal to the vectors already found. This ends when the eigenvalue
    (the Rayleigh quotient) changes by less than `tolerance` of itself, or `iterations` are done. Published spectra are
    made so (PyHessian, arXiv 1912.07145: 100 iterations, 1e-3). Two eigenvalues of equal magnitude and
    other sign are found as a mixture, which the residual shows. InputError for more than there are weights.
    """
    if not 1 <= count <= like.numel():
        raise InputError(f"{count} eigenvalues of {like.numel()} weights; ask for 1 to {like.numel()}")
    found: list[Eigenpair] = []
    for number in range(count):
        basis = [pair.vector for pair in found]
        generator = torch.Generator().manual_seed(seed + number)
        start = torch.randn(like.numel(), generator=generator, dtype=torch.float64).to(like)
        vector = normalised(orthogonal_to(start, basis))
        value, done = 0.0, 0
        for done in range(1, iterations + 1):
            product = orthogonal_to(matrix @ vector, basis)
            now = float(vector @ product)
            residual = float((product - now * vector).norm())
            length = float(product.norm())
            if length == 0.0:  # nothing is left: all further eigenvalues are 0
                value = now
                break
            settled = abs(now - value) <= tolerance * abs(now)
            value, best = now, vector
            vector = product / length
            if settled and done > 1:
                vector = best
                break
        found.append(Eigenpair(value, vector, done, residual / abs(value) if value else 0.0))
    return found


def normalised(vector: Tensor) -> Tensor:
    return vector / vector.norm()
