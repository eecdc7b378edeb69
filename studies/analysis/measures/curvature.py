"""The Hessian of a loss over all weights, by its exact products with vectors: double backward (Pearlmutter 1994)."""

import math
from collections.abc import Callable, Sequence
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.nn.attention import SDPBackend, sdpa_kernel

from steadyseg.core.errors import CheckFailed, InputError

MEMINFO = Path("/proc/meminfo")


class Hessian:
    """H of loss() over the trainable weights of a network, at its weights as they are.

    The graph of the gradient is kept, so that a product costs one backward pass through it. Attention is computed by
    its plain formula, as torch's fused ones cannot be differentiated twice.
    """

    def __init__(self, network: nn.Module, loss: Callable[[], Tensor]) -> None:
        self.weights = [weight for weight in network.parameters() if weight.requires_grad]
        self.size = sum(weight.numel() for weight in self.weights)
        if not self.size:
            raise InputError("the network has no weights to differentiate by")
        with sdpa_kernel(SDPBackend.MATH):
            value = loss()
            if not math.isfinite(float(value.detach())):
                raise CheckFailed(
                    f"the loss is {float(value.detach())}: no Hessian there; look at the data and the weights"
                )
            gradients = torch.autograd.grad(value, self.weights, create_graph=True, materialize_grads=True)
        self._gradient = torch.cat([gradient.reshape(-1) for gradient in gradients])
        self.loss = float(value.detach())

    @property
    def gradient(self) -> Tensor:
        """Gradient (P,) of the loss."""
        return self._gradient.detach()

    def __matmul__(self, vector: Tensor) -> Tensor:
        """(P,) -> H v (P,); CheckFailed where it is no number."""
        if self._gradient.requires_grad:
            parts = torch.autograd.grad(
                self._gradient, self.weights, vector, retain_graph=True, allow_unused=True, materialize_grads=True
            )
            product = torch.cat([part.reshape(-1) for part in parts])
        else:  # a loss that is linear in all weights
            product = torch.zeros_like(vector)
        if not bool(product.isfinite().all()):
            raise CheckFailed("the Hessian times a vector is not finite: its eigenvalues cannot be found")
        return product

    def dense(self) -> Tensor:
        """(P, P), column by column: for tests of tiny networks."""
        unit = torch.eye(self.size, dtype=self._gradient.dtype, device=self._gradient.device)
        return torch.stack([self @ column for column in unit], 1)


def require_memory(weights: int, vectors: int, bytes_each: int, what: str, available: int | None = None) -> None:
    """InputError, before anything is computed, where so many vectors of all weights do not fit into free memory."""
    needed = weights * vectors * bytes_each
    free = free_memory() if available is None else available
    if free is not None and needed > free:
        raise InputError(
            f"{what} keeps {vectors} vectors of {weights} weights, about {needed / 2**30:.1f} GiB, and "
            f"{free / 2**30:.1f} GiB are free; ask for fewer"
        )


def free_memory() -> int | None:
    """Bytes that can be had without swapping; None where the system does not tell."""
    try:
        words = MEMINFO.read_text().split()
        return int(words[words.index("MemAvailable:") + 1]) * 1024
    except (OSError, ValueError, IndexError):
        return None


def orthogonal_to(vector: Tensor, found: Sequence[Tensor]) -> Tensor:
    """Removes the parts along unit vectors, twice: one pass leaves rounding errors as large as what it removed."""
    for _ in range(2):
        for one in found:
            vector = vector - (vector @ one) * one
    return vector
