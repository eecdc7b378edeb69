"""The density of all eigenvalues of a symmetric matrix that is known by its products: stochastic Lanczos quadrature.

From a random vector, m steps of Lanczos give a tridiagonal matrix. Its eigenvalues and squared first components are the
nodes and weights of a Gauss quadrature of the spectral measure that the vector sees (Ghorbani et al. 2019, arXiv
1901.10159). The mean over vectors of random signs estimates the density. Moments up to 2 m - 1 of each are exact.
"""

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from steadyseg.studies.analysis.measures.curvature import orthogonal_to
from steadyseg.studies.analysis.measures.eigenvalues import Symmetric, normalised


@dataclass(frozen=True)
class Quadrature:
    """Nodes and weights (n,) of a spectral density; the weights sum to 1."""

    nodes: Tensor
    weights: Tensor

    def moment(self, power: int) -> float:
        """The mean of eigenvalue ** power: power 1 is the trace over the number of weights."""
        return float((self.weights * self.nodes**power).sum())

    def density(self, grid: Tensor, width: float) -> Tensor:
        """(G,) with every node as a Gaussian of this standard deviation."""
        around = (grid[:, None] - self.nodes[None]) / width
        return (self.weights * torch.exp(-0.5 * around**2)).sum(1) / (width * math.sqrt(2 * math.pi))


def lanczos(matrix: Symmetric, start: Tensor, steps: int) -> Quadrature:
    """The quadrature that one start vector (P,) sees; fewer nodes where its Krylov space ends before.

    Every vector is made orthogonal to all before it, so that no eigenvalue is found twice; so all are kept in memory.
    """
    basis = [normalised(start)]
    diagonal: list[float] = []
    beside: list[float] = []
    for step in range(steps):
        product = matrix @ basis[-1]
        diagonal.append(float(product @ basis[-1]))
        rest = orthogonal_to(product, basis)
        length = float(rest.norm())
        scale = max(map(abs, (*diagonal, *beside)))
        if step == steps - 1 or length <= 1e-6 * scale or len(basis) == start.numel():
            break
        beside.append(length)
        basis.append(rest / length)
    tridiagonal = torch.diag(torch.tensor(diagonal, dtype=torch.float64))
    for place, length in enumerate(beside):
        tridiagonal[place, place + 1] = tridiagonal[place + 1, place] = length
    nodes, vectors = torch.linalg.eigh(tridiagonal)
    return Quadrature(nodes, vectors[0] ** 2)


def random_signs(like: Tensor, seed: int) -> Tensor:
    """(P,) of -1 and 1: the start vectors whose mean is the density."""
    generator = torch.Generator().manual_seed(seed)
    return (2 * torch.randint(0, 2, (like.numel(),), generator=generator) - 1).to(like)


def mean_quadrature(parts: list[Quadrature]) -> Quadrature:
    """Averages the quadratures of several start vectors or batches."""
    return Quadrature(
        torch.cat([part.nodes for part in parts]), torch.cat([part.weights for part in parts]) / len(parts)
    )
