"""Stages: named modules of a network whose features can be read while it runs."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol, runtime_checkable

from torch import Tensor, nn

from steadyseg.core.errors import InputError


class Stage(NamedTuple):
    """A module, and the function that picks its features out of its output."""

    module: nn.Module
    pick: Callable[[Any], Tensor]


@runtime_checkable
class HasStages(Protocol):
    """A network that names its stages."""

    def named_stages(self) -> dict[str, Stage]:
        """{name: stage} in the order of computation; features are (B, C, h, w) or (B, C)."""


def itself(output: Any) -> Tensor:
    """Returns the output: the `pick` of a module whose output is its features."""
    features: Tensor = output
    return features


def named_stages(network: nn.Module) -> dict[str, Stage]:
    """The stages of a network; InputError where it names none."""
    if not isinstance(network, HasStages):
        raise InputError(f"{type(network).__name__} names no stages, so its features cannot be read")
    return network.named_stages()


class StageFeatures:
    """Keeps the features of the named stages from the network's last forward pass. InputError for an unknown name."""

    def __init__(self, network: nn.Module, stages: Sequence[str]) -> None:
        points = named_stages(network)
        for name in stages:
            if name not in points:
                raise InputError(f"unknown stage {name!r}; this network has {', '.join(points)}")
        self.stages = tuple(stages)
        self._seen: dict[str, Tensor] = {}
        self._handles = [self._listen(name, *points[name]) for name in stages]

    def take(self) -> list[Tensor]:
        """Takes the features of the last pass in the order of `stages`. InputError if a stage did not run."""
        seen = self.seen()
        if absent := [name for name in self.stages if name not in seen]:
            raise InputError(f"stage {absent[0]!r} is not run by this network: familiarity cannot be fitted on it")
        return [seen[name] for name in self.stages]

    def seen(self) -> dict[str, Tensor]:
        """Features by name of the stages that ran since the last call; a network may be cut between two stages."""
        seen, self._seen = self._seen, {}
        return seen

    def remove(self) -> None:
        """Removes the hooks from the network."""
        for handle in self._handles:
            handle.remove()

    def _listen(self, name: str, module: nn.Module, pick: Callable[[Any], Tensor]) -> Any:
        """Adds a hook that does not hold the module; else the module would wait for the garbage collector."""

        def keep(_: nn.Module, inputs: Any, output: Any) -> None:
            self._seen[name] = pick(output)

        return module.register_forward_hook(keep)
