"""Feature maps of any network: what its units return, as (B, C, H, W)."""

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from steadyseg.studies.analysis.measures.units import Unit

See = Callable[[Unit, Tensor, Tensor], None]
"""(unit, the map that entered it, the map that left it)."""


@dataclass(frozen=True)
class Layout:
    """Memory layout of a network's feature maps."""

    channels_last: bool = False
    """Maps are (B, H, W, C), as timm's Swin transformers have them."""
    prefix_tokens: int | None = None
    """Tokens before the patch tokens (the class token), or None for as many as leave a square."""


def layout_of(network: nn.Module) -> Layout:
    """Layout that timm records for its networks; (B, C, H, W) for all others."""
    for module in network.modules():
        if hasattr(module, "num_prefix_tokens") or hasattr(module, "output_fmt"):
            last = str(getattr(module, "output_fmt", "")).rpartition(".")[2] == "NHWC"
            return Layout(last, getattr(module, "num_prefix_tokens", None))
    return Layout()


def as_maps(output: Any, layout: Layout = Layout()) -> Tensor | None:
    """(B, C, H, W) of what a unit returned; None where it is no map.

    Tokens (B, N, C) become a square without their prefix. Of a tuple it is the field `x` (our U-Net's running map) or
    the last part that is a map (the deepest of an encoder's).
    """
    if isinstance(output, Tensor):
        if output.ndim == 4:
            return output.permute(0, 3, 1, 2) if layout.channels_last else output
        return _square(output, layout.prefix_tokens) if output.ndim == 3 else None
    if hasattr(output, "x"):
        return as_maps(output.x, layout)
    if isinstance(output, tuple | list):
        return next((maps for part in reversed(output) if (maps := as_maps(part, layout)) is not None), None)
    return None


def _square(tokens: Tensor, prefix: int | None) -> Tensor | None:
    count = tokens.shape[1]
    for skipped in (0, 1, 2) if prefix is None else (prefix,):
        side = math.isqrt(max(0, count - skipped))
        if side and side * side == count - skipped:
            return tokens[:, skipped:].transpose(1, 2).unflatten(2, (side, side))
    return None


@dataclass(frozen=True)
class Seen:
    """A unit that returns a feature map."""

    unit: Unit
    entered: tuple[int, ...]
    """(C, H, W) of the map that enters it, or of the one that leaves where none enters."""
    size: tuple[int, ...]
    """(C, H, W) of the map that leaves it."""


def trace(network: nn.Module, batch: Tensor, units: Sequence[Unit], layout: Layout) -> list[Seen]:
    """Finds the units that return a feature map, in the order of computation; units that return the logits are left
    out."""
    found: dict[str, tuple[Seen, torch.UntypedStorage]] = {}  # kept, or the logits may get the memory of a freed map

    def see(unit: Unit, before: Tensor, after: Tensor) -> None:
        seen = Seen(unit, tuple(before.shape[1:]), tuple(after.shape[1:]))
        found.setdefault(unit.name, (seen, after.untyped_storage()))

    with torch.no_grad(), watch_maps(units, see, layout):
        logits = network(batch)
    return [seen for seen, kept in found.values() if kept.data_ptr() != logits.untyped_storage().data_ptr()]


@contextmanager
def watch_maps(units: Sequence[Unit], see: See, layout: Layout = Layout()) -> Iterator[None]:
    """While the context is open, `see` gets the maps of every unit that is called, in the order in which units end.
    Outputs that are no maps are ignored."""

    def hook(unit: Unit) -> Callable[[nn.Module, Any, Any], None]:
        def called(module: nn.Module, inputs: Any, output: Any) -> None:
            after = as_maps(output, layout)
            if after is not None:
                before = as_maps(inputs[0], layout) if inputs else None
                see(unit, after if before is None else before, after)

        return called

    handles = [unit.module.register_forward_hook(hook(unit)) for unit in units]
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()
