"""The parts of any network by name: its blocks, convolutions, attention and MLP blocks, and smoothing layers."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from torch import nn

from steadyseg.core.errors import InputError
from steadyseg.core.insertion import PrependedLayer
from steadyseg.core.smoothing import SpatialSmoothing

UnitKind = Literal["block", "conv", "attention", "mlp", "smoothing"]
KINDS: tuple[UnitKind, ...] = ("block", "conv", "attention", "mlp", "smoothing")
LISTED = 24
"""Number of names that an error lists."""


@dataclass(frozen=True, eq=False)
class Unit:
    """A part of a network."""

    name: str
    """Its dotted name in the network."""
    kind: UnitKind
    module: nn.Module


def list_units(network: nn.Module, kind: UnitKind) -> list[Unit]:
    """Lists the units of one kind, in the order of the network's modules.

    - block: the repeated parts (a residual block, a stage of a U-Net, a transformer block) and the stem.
      Without any: all convolutions and linear layers.
    - conv: convolutions larger than 1x1
    - attention, mlp: by the name of their class
    - smoothing: every `SpatialSmoothing`
    """
    if kind == "block":
        found = [Unit(name, kind, module) for name, module in _blocks("", network)]
        return found or _matching(network, kind, lambda module: isinstance(module, nn.Conv2d | nn.Linear))
    return _matching(network, kind, IS_A[kind])


def find_units(network: nn.Module, names: Sequence[str], model: str) -> list[Unit]:
    """The units of these dotted names, of whatever kind; InputError lists what `model` has."""
    known = {unit.name: unit for kind in KINDS for unit in list_units(network, kind)}
    for name in names:
        if name not in known:
            shown = ", ".join(list(known)[:LISTED]) + (", ..." if len(known) > LISTED else "")
            raise InputError(f"{model} has no unit {name!r}; it has {shown}")
    return [known[name] for name in names]


def _computes(module: nn.Module) -> bool:
    """Returns True for a module with children and with weights of more than one dimension."""
    return any(module.children()) and any(weight.ndim > 1 for weight in module.parameters())


def _is_list(module: nn.Module, least: int) -> bool:
    parts = isinstance(module, nn.Sequential | nn.ModuleList)
    return parts and sum(map(_computes, module.children())) >= least


def _holds_blocks(module: nn.Module) -> bool:
    """A list with a block in it, or a stage: a module with a list of two blocks or more somewhere inside."""
    if isinstance(module, PrependedLayer):
        return True
    return _is_list(module, 1) or any(_is_list(part, 2) for part in module.modules())


def _blocks(place: str, module: nn.Module) -> Iterator[tuple[str, nn.Module]]:
    for name, child in module.named_children():
        if _holds_blocks(child):
            yield from _blocks(f"{place}{name}.", child)
        elif _computes(child):
            yield f"{place}{name}", child


def _matching(network: nn.Module, kind: UnitKind, is_one: Callable[[nn.Module], bool]) -> list[Unit]:
    """The outermost matching modules: an attention module may have another in it."""
    found: list[Unit] = []
    for name, module in network.named_modules():
        if name and is_one(module) and not any(name.startswith(f"{unit.name}.") for unit in found):
            found.append(Unit(name, kind, module))
    return found


def _named(word: str) -> Callable[[nn.Module], bool]:
    def is_one(module: nn.Module) -> bool:
        name = type(module).__name__.lower()
        return name.endswith(word) and any(weight.ndim > 1 for weight in module.parameters())

    return is_one


IS_A: dict[UnitKind, Callable[[nn.Module], bool]] = {
    "conv": lambda module: isinstance(module, nn.Conv2d) and max(module.kernel_size) > 1,
    "attention": _named("attention"),
    "mlp": _named("mlp"),
    "smoothing": lambda module: isinstance(module, SpatialSmoothing),
}
