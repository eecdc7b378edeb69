"""A network without one of its units, or with a smoothing layer at part of its weight; the network comes back as it
was.

What stands in for a unit keeps all shapes. Attention and MLP blocks return 0, so that the residual path goes on alone.
A convolution or a block that keeps the shape returns its input. Any other convolution returns 0; a residual
branch is then without it. A block that changes the shape cannot be left out. A smoothing layer returns its input,
padded with zeros below and right to the layer's output size. (The published blur grows a map by one.) So the maps after
it keep their sizes, and only that border stays of the layer.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from steadyseg.studies.analysis.measures.features import Seen
from steadyseg.studies.analysis.measures.units import Unit


@contextmanager
def removed(unit: Unit) -> Iterator[None]:
    """Context in which the unit does nothing."""
    with changed(unit.module, lambda before, after: without(unit, before, after)):
        yield


@contextmanager
def weighted(unit: Unit, weight: float | Tensor) -> Iterator[None]:
    """Context in which a smoothing layer returns weight * smoothed + (1 - weight) * its input."""
    with changed(unit.module, lambda before, after: torch.lerp(entered(before, after), after, torch.as_tensor(weight))):
        yield


def without(unit: Unit, before: Any, after: Any) -> Any:
    """Replacement for the unit's output."""
    if unit.kind in ("attention", "mlp"):
        return zero(after)
    if unit.kind == "smoothing":
        return entered(before, after)
    same = isinstance(before, Tensor) and isinstance(after, Tensor) and before.shape == after.shape
    return before if same else zero(after)


def can_be_removed(seen: Seen) -> bool:
    """Returns True unless the unit is a block that changes the size of its map."""
    return seen.unit.kind != "block" or seen.entered == seen.size


def zero(output: Any) -> Any:
    if isinstance(output, Tensor):
        return torch.zeros_like(output)
    return type(output)(zero(part) for part in output) if isinstance(output, tuple | list) else output


def entered(before: Tensor, after: Tensor) -> Tensor:
    """The unit's input, padded with zeros to the size of its output."""
    below, right = (after.shape[axis] - before.shape[axis] for axis in (-2, -1))
    return F.pad(before, (0, right, 0, below))


@contextmanager
def changed(module: nn.Module, change: Callable[[Any, Any], Any]) -> Iterator[None]:
    def hook(_: nn.Module, inputs: Any, output: Any) -> Any:
        return change(inputs[0], output)

    handle = module.register_forward_hook(hook)
    try:
        yield
    finally:
        handle.remove()
