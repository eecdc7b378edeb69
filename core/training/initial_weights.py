"""Weights of another network to begin a training with."""

from torch import nn

from steadyseg.core.classes import ClassList
from steadyseg.core.model.checkpoint import CheckpointMeta, load_weights
from steadyseg.core.model.model import Model


def load_initial_weights(network: nn.Module, model: Model, classes: ClassList, layer: type[nn.Module]) -> None:
    """Loads the model's weights into the network; the head stays random where the model has other classes.

    Dropout and spatial smoothing have no weights, so they may differ. InputError where a tensor is missing or has
    another shape.

    Args:
        layer: Type of the layer that computes the logits, the last one of this type.
    """
    tensors = dict(model.tensors)
    if describe_head(model.meta, classes):
        head = [name for name, module in network.named_modules() if isinstance(module, layer)][-1]
        own = network.state_dict()
        tensors |= {name: own[name] for name in own if name.startswith(f"{head}.")}
    load_weights(network, tensors, model.path)


def describe_head(initial: CheckpointMeta, classes: ClassList) -> tuple[str, ...]:
    """Returns a line for the user if the head stays random. Colours and the void id are no part of the weights."""
    if initial.classes.names == classes.names:
        return ()
    return ("the initial weights have other classes, so the last layer begins with random weights",)
