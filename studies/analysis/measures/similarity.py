"""Similarity of the features of layers: linear CKA with the unbiased estimator, summed over mini-batches.

HSIC_1 of two Gram matrices is unbiased for every batch size from 4 on (Song et al. 2012). So its mean over mini-batches
converges to HSIC_1 of all pictures (Nguyen et al. 2021, arXiv 2010.15327, Eq. 3). CKA is HSIC(K, L) / sqrt(HSIC(K, K)
HSIC(L, L)) of these means. Turning or scaling all features of a layer changes nothing.
"""

from collections.abc import Sequence

import torch
from torch import Tensor

from steadyseg.core.errors import InputError

MIN_BATCH = 4
PART = 2**19
"""Numbers of each picture at once."""


def gram(features: Tensor) -> Tensor:
    """(n, ...) -> (n, n) in double, of the flattened features; part by part, as a map may have millions of numbers."""
    found = torch.zeros(len(features), len(features), dtype=torch.float64)
    for part in features.detach().flatten(1).split(PART, dim=1):
        found += (part.double() @ part.double().T).cpu()
    return found


def unbiased_hsic(first: Tensor, second: Tensor) -> float:
    """HSIC_1 of two Gram matrices (n, n); InputError for fewer than 4 samples."""
    n = len(first)
    if n < MIN_BATCH:
        raise InputError(f"unbiased CKA needs mini-batches of {MIN_BATCH} pictures or more, got {n}")
    k, l = (matrix - torch.diag(torch.diagonal(matrix)) for matrix in (first, second))  # noqa: E741
    mixed = (k * l).sum() + k.sum() * l.sum() / ((n - 1) * (n - 2)) - 2.0 * (k.sum(0) @ l.sum(0)) / (n - 2)
    return float(mixed / (n * (n - 3)))


class MinibatchCka:
    """CKA between each of one list of layers and each of another, over mini-batches of the same pictures."""

    def __init__(self) -> None:
        self.batches = 0
        self._mixed: Tensor
        self._ours: Tensor
        self._theirs: Tensor

    def add(self, ours: Sequence[Tensor], theirs: Sequence[Tensor]) -> None:
        """Gram matrices (n, n) of the two lists' layers."""
        mixed = torch.tensor([[unbiased_hsic(a, b) for b in theirs] for a in ours], dtype=torch.float64)
        own = torch.tensor([unbiased_hsic(a, a) for a in ours], dtype=torch.float64)
        other = torch.tensor([unbiased_hsic(b, b) for b in theirs], dtype=torch.float64)
        if not self.batches:
            self._mixed, self._ours, self._theirs = mixed * 0, own * 0, other * 0
        self._mixed, self._ours, self._theirs = self._mixed + mixed, self._ours + own, self._theirs + other
        self.batches += 1

    def result(self) -> list[list[float | None]]:
        """[ours][theirs]; None where a layer gives all pictures the same features."""
        scale = self._ours[:, None].clamp(min=0).sqrt() * self._theirs[None].clamp(min=0).sqrt()
        return [
            [float(value / by) if float(by) > 0 else None for value, by in zip(values, scales, strict=True)]
            for values, scales in zip(self._mixed, scale, strict=True)
        ]


def mean_beside_diagonal(matrix: Sequence[Sequence[float | None]]) -> float | None:
    """The mean CKA of layers with others of the same network: how alike its depths are."""
    known = [
        value
        for row in range(len(matrix))
        for column in range(len(matrix))
        if row != column and (value := matrix[row][column]) is not None
    ]
    return sum(known) / len(known) if known else None
