"""Networks of other libraries: their names, and the layers that are put into them before modules that subsample.

The skips of a U-Net and the stage outputs of a feature extractor are taken before the inserted layers, as in our own
U-Net.
"""

import difflib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from steadyseg.core.dropout import Dropout
from steadyseg.core.errors import InputError, first_line
from steadyseg.core.options import PaddingName, ProbName
from steadyseg.core.smoothing import SpatialSmoothing

ACTIVATION_NAMES = ("relu", "swish", "silu", "gelu", "mish", "elu", "sigmoid", "softplus", "hardtanh")
"""Parts of the class names of activations that bound a map from below, so that the ReLU of the smoothing deletes little
or nothing. They are names, because timm and SMP have classes of their own."""


@dataclass(frozen=True)
class InsertionPoint:
    """A module that halves the resolution of a feature map."""

    name: str
    """Its dotted name in the network."""
    channels: int
    """Channels of the map that enters it."""
    activated: bool
    """True if the map comes out of an activation module or has no negative value; MobileNet-like and pre-activation
    stages end without an activation."""


class PrependedLayer(nn.Module):
    """A layer in front of a module."""

    def __init__(self, layer: nn.Module, module: nn.Module) -> None:
        super().__init__()
        self.layer, self.module, self.training = layer, module, module.training

    def forward(self, x: Tensor, *args: Any, **kwargs: Any) -> Any:
        return self.module(self.layer(x), *args, **kwargs)


def require_timm_name(name: str, prefix: str) -> None:
    """Raises InputError, with the nearest names behind `prefix`, for a name that the installed timm does not list.

    timm also takes `hf-hub:` and `local-dir:` names and paths. With such a name a record would decide what is fetched,
    or which folder a network is built from.
    """
    import timm

    if ":" in name or "/" in name or not timm.is_model(name):
        near = difflib.get_close_matches(name, timm.list_models(), n=3)
        hint = f"did you mean {' or '.join(prefix + n for n in near)}?" if near else "see timm.list_models()"
        raise InputError(f"timm has no network {name[:80]!r}; {hint}")


def insert_smoothing(
    network: nn.Module,
    prob: ProbName = "tanh",
    linear_prob: ProbName = "signed-tanh",
    size: int = 2,
    padding: PaddingName = "same",
    example: Tensor | None = None,
) -> list[InsertionPoint]:
    """Puts `SpatialSmoothing` before every subsampling module of a CNN, in place; returns the insertion points.

    `linear_prob` is used where the map does not come from an activation. The published ReLU would delete the negative
    half of such a map. `padding="same"` keeps every shape.
    """

    for name in (prob, linear_prob):  # checks both names before any change, even a name that no place would use
        SpatialSmoothing(name, size, padding, channels=1)

    def layer(place: InsertionPoint) -> nn.Module:
        return SpatialSmoothing(prob if place.activated else linear_prob, size, padding, channels=place.channels)

    return _insert(network, subsampling_points(network, example), layer)


def insert_dropout(
    network: nn.Module, rate: float, deepest: int = 2, example: Tensor | None = None
) -> list[InsertionPoint]:
    """Puts `Dropout` before the last `deepest` subsampling modules of a CNN, in place; returns the insertion points.

    The encoder of the published U-Net, too, has its dropout in the deeper half, on the main path and not on the skips.
    """
    if deepest < 1:
        raise InputError(f"dropout needs at least one place, got {deepest}")
    return _insert(network, subsampling_points(network, example)[-deepest:], lambda place: Dropout(rate))


def subsampling_points(network: nn.Module, example: Tensor | None = None) -> list[InsertionPoint]:
    """The outermost modules that halve a feature map, in the order of computation; the stem, which reads the image, is
    not among them.

    They are found by running `example` through the network ((1, 3, 128, 128) noise by default), so any CNN made of
    modules will do. Raises InputError if the network does not take the example or has no such module.
    """
    if example is None:
        example = torch.rand(1, 3, 128, 128, generator=torch.Generator().manual_seed(0))
    trace = _Trace(network, example.to(next(network.parameters(), example)))
    places: list[InsertionPoint] = []
    for name, module in network.named_modules():
        inside = any(name.startswith(f"{place.name}.") for place in places)
        if not name or inside or not trace.halves(module) or _begins_unhalved(module, trace):
            continue
        entering = trace.inputs[module]
        places.append(InsertionPoint(name, entering.shape[1], trace.enters_activated[module]))
    if not places:
        raise InputError(
            f"{type(network).__name__} has no module that halves a feature map; smoothing and dropout go into a CNN"
        )
    return sorted(places, key=lambda place: trace.order[network.get_submodule(place.name)])


class _Trace:
    """Inputs and outputs of every module in its first call of one forward pass, which leaves the network unchanged."""

    def __init__(self, network: nn.Module, example: Tensor) -> None:
        self.image = example
        self.inputs: dict[nn.Module, Tensor] = {}
        self.enters_activated: dict[nn.Module, bool] = {}
        self.outputs: dict[nn.Module, Tensor] = {}
        self.order: dict[nn.Module, int] = {}
        # Tensors by id, kept so that no later tensor gets the id, with their versions, which `x += y` raises.
        self._activated: dict[int, tuple[Tensor, int]] = {}
        training = {module: module.training for module in network.modules()}  # for each, as some may be frozen
        handles = [module.register_forward_pre_hook(self._enter) for module in network.modules()]
        handles += [module.register_forward_hook(self._leave) for module in network.modules()]
        try:
            with torch.inference_mode(False), torch.no_grad():  # tensors of inference mode have no version
                network.eval()(example.clone())
        except (AssertionError, RuntimeError, TypeError, ValueError) as error:
            size = " x ".join(map(str, example.shape))
            raise InputError(
                f"{type(network).__name__} does not take a {size} picture ({first_line(error)}); pass an example that "
                "it takes"
            ) from error
        finally:
            for module, mode in training.items():
                module.training = mode
            for handle in handles:
                handle.remove()

    def halves(self, module: nn.Module) -> bool:
        """True if a feature map entered the module and left at half its size, rounded up or down."""
        if module not in self.inputs or module not in self.outputs:
            return False
        entered, left = self.inputs[module], self.outputs[module]
        if entered.shape == self.image.shape:
            return False
        sizes = zip(entered.shape[-2:], left.shape[-2:], strict=True)
        return all(after < before and after in (before // 2, (before + 1) // 2) for before, after in sizes)

    def _enter(self, module: nn.Module, inputs: tuple[Any, ...]) -> None:
        self.order.setdefault(module, len(self.order))
        if module not in self.inputs and inputs and isinstance(inputs[0], Tensor) and inputs[0].ndim == 4:
            self.inputs[module] = inputs[0]
            # Must be read before the module runs, which may begin with a ReLU in place.
            self.enters_activated[module] = self._is_activated(inputs[0])

    def _leave(self, module: nn.Module, inputs: tuple[Any, ...], output: Any) -> None:
        if isinstance(output, Tensor) and output.ndim == 4:
            self.outputs.setdefault(module, output)
            name = type(module).__name__.lower()
            if not any(module.children()) and any(part in name for part in ACTIVATION_NAMES):
                self._activated[id(output)] = output, output._version

    def _is_activated(self, x: Tensor) -> bool:
        _, version = self._activated.get(id(x), (x, -1))
        return version == x._version or float(x.min()) >= 0.0


def _begins_unhalved(module: nn.Module, trace: _Trace) -> bool:
    """True if the first member of a chain of modules does not subsample: the insertion point lies further inside."""
    first: nn.Module | None = next(iter(module.children()), None) if isinstance(module, nn.Sequential) else None
    return first is not None and not trace.halves(first)


def _insert(
    network: nn.Module, places: list[InsertionPoint], layer: Callable[[InsertionPoint], nn.Module]
) -> list[InsertionPoint]:
    layers = [layer(place) for place in places]  # before the first change, so that an error leaves the network whole
    for place, inserted_layer in zip(places, layers, strict=True):
        owner, _, name = place.name.rpartition(".")
        module = network.get_submodule(place.name)
        network.get_submodule(owner)._modules[name] = PrependedLayer(inserted_layer.train(module.training), module)
    return places
