"""What a training begins with: the weights of another network of the same layout."""

from torch import nn

from core.classes import ClassList
from core.errors import InputError
from core.model.checkpoint import load_checkpoint, load_weights
from seg.pretrained import find_checkpoint


def load_initial_weights(network: nn.Module, classes: ClassList, model: str) -> None:
    """Fills the network from a pretrained name or a file; its head stays random where the file knows other classes.

    Dropout and spatial smoothing have no weights, so they may differ. InputError where a tensor is absent or of another
    shape.
    """
    path = find_checkpoint(model)
    tensors, meta = load_checkpoint(path)
    if meta.classes.void is None:
        raise InputError(
            f"{path}: a classifier, whose weights fit no segmentation network; give a segmentation checkpoint"
        )
    if meta.classes != classes:
        own = network.state_dict()
        tensors |= {name: own[name] for name in own if name.startswith(f"{head_of(network)}.")}
    load_weights(network, tensors, path)


def head_of(network: nn.Module) -> str:
    """The name of the layer that makes the logits: the last convolution."""
    return [name for name, module in network.named_modules() if isinstance(module, nn.Conv2d)][-1]
