"""Eigenvalues of a Hessian by its products: the largest in magnitude, and the density of all.

The density is a stochastic Lanczos quadrature. From a random vector, m steps of Lanczos give a tridiagonal matrix. Its
eigenvalues and squared first components are the nodes and weights of a Gauss quadrature of the spectral measure that
the vector sees (Ghorbani et al. 2019, arXiv 1901.10159). The mean over vectors of random signs estimates the density.
Moments up to 2 m - 1 of each are exact.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import torch
from scipy.linalg import eigh_tridiagonal
from scipy.sparse.linalg import ArpackNoConvergence, LinearOperator, eigsh
from torch import Tensor

from steadyseg.core.errors import CheckFailed, InputError
from steadyseg.studies.analysis.measures.curvature import Hessian, orthogonal_to


class Eigenpair(NamedTuple):
    """One eigenvalue with its sign, and the error of the pair."""

    value: float
    residual: float
    """|H v - value v| / |value| of the unit eigenvector v."""


def top_eigenpairs(
    hessian: Hessian, count: int, *, iterations: int = 100, tolerance: float = 1e-3, seed: int = 0
) -> list[Eigenpair]:
    """The `count` eigenvalues of largest magnitude, largest first.

    Lanczos with at most `iterations` restarts (ARPACK), until every residual is at most `tolerance`. It keeps
    `kept_vectors(count)` vectors. It finds both ends of the spectrum at once. Power iteration, by which published
    spectra are made (PyHessian, arXiv 1912.07145), mixes two eigenvalues of similar magnitude and other sign.
    InputError for as many as there are weights, CheckFailed where the iterations do not suffice.
    """
    size, like = hessian.size, hessian.gradient
    if not 1 <= count < size:
        raise InputError(f"{count} eigenvalues of {size} weights; ask for 1 to {size - 1}")

    def product(vector: Any) -> Any:
        return (hessian @ torch.from_numpy(vector).to(like)).cpu().numpy()

    start = torch.randn(size, generator=torch.Generator().manual_seed(seed), dtype=like.dtype).numpy()
    operator, kept = LinearOperator((size, size), product, dtype=start.dtype), min(size, kept_vectors(count))
    if not product(start).any():  # a loss that is linear in all weights
        return [Eigenpair(0.0, 0.0)] * count
    try:
        values, vectors = eigsh(operator, count, v0=start, ncv=kept, maxiter=iterations, tol=tolerance)
    except ArpackNoConvergence as error:
        raise CheckFailed(
            f"{len(error.eigenvalues)} of {count} eigenpairs are within {tolerance:g} after {iterations} restarts; "
            "set --config iterations higher"
        ) from error
    pairs = [
        Eigenpair(float(value), float(np.linalg.norm(product(vector) - value * vector) / (abs(value) or 1.0)))
        for value, vector in zip(values, vectors.T.copy(), strict=True)
    ]
    return sorted(pairs, key=lambda pair: -abs(pair.value))


def kept_vectors(count: int) -> int:
    """The vectors that Lanczos keeps between restarts, for so many eigenvalues."""
    return max(20, 2 * count + 1)


@dataclass(frozen=True)
class Quadrature:
    """Nodes and weights (n,) of a spectral density; the weights sum to 1."""

    nodes: Tensor
    weights: Tensor

    def moment(self, power: int) -> float:
        """The mean of eigenvalue ** power: power 1 is the trace over the number of weights."""
        return float((self.weights * self.nodes**power).sum())


def lanczos(hessian: Hessian, start: Tensor, steps: int) -> Quadrature:
    """The quadrature that one start vector (P,) sees; fewer nodes where its Krylov space ends before.

    Every vector is made orthogonal to all before it, so that no eigenvalue is found twice; so all are kept in memory.
    """
    basis = [start / start.norm()]
    diagonal: list[float] = []
    beside: list[float] = []
    for step in range(steps):
        product = hessian @ basis[-1]
        diagonal.append(float(product @ basis[-1]))
        rest = orthogonal_to(product, basis)
        length = float(rest.norm())
        scale = max(map(abs, (*diagonal, *beside)))
        if step == steps - 1 or length <= 1e-6 * scale or len(basis) == start.numel():
            break
        beside.append(length)
        basis.append(rest / length)
    nodes, vectors = eigh_tridiagonal(diagonal, beside)
    return Quadrature(torch.from_numpy(nodes), torch.from_numpy(vectors[0] ** 2))


def random_signs(like: Tensor, seed: int) -> Tensor:
    """(P,) of -1 and 1: the start vectors whose mean is the density."""
    generator = torch.Generator().manual_seed(seed)
    return (2 * torch.randint(0, 2, (like.numel(),), generator=generator) - 1).to(like)
