"""What every backend starts from: a frame's computation with a model's network, and the network's parts for CPUs."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils._pytree import tree_flatten, tree_leaves, tree_unflatten

from steadyseg.core.dropout import drawing_dropouts, dropout_calls
from steadyseg.core.errors import InputError
from steadyseg.core.familiarity.head import WatchedPredictor
from steadyseg.core.familiarity.stored import familiarity_head
from steadyseg.core.frame import FrameScores
from steadyseg.core.method import Method
from steadyseg.core.model.model import Model
from steadyseg.core.predictors import Ensemble
from steadyseg.seg.streaming import StreamingSegmenter


def streaming_module(
    model: Model,
    method: Method,
    *,
    network: nn.Module | None = None,
    members: Sequence[Model] = (),
    size: int | None = None,
    precision: str = "fp32",
) -> StreamingSegmenter:
    """Returns the computation of a frame with the familiarity of the model's record; an ensemble has no familiarity.

    `network` replaces the model's own, `size` its height in pixels, and `precision` is the network's number format.
    """
    meta = model.meta
    if members:
        network = ensemble([model, *members])
    elif network is None:
        network = model.network()
    head = None if members else familiarity_head(model, method, precision)
    return StreamingSegmenter(network, meta.mean, meta.std, meta.height if size is None else size, method, head)


def ensemble(models: Sequence[Model]) -> Ensemble:
    """Returns the networks of the models as one; their preprocessing must agree, as all get the same frame."""
    first = models[0].meta
    networks = [models[0].network()]
    for model in models[1:]:
        for name in ("classes", "mean", "std"):
            if getattr(model.meta, name) != getattr(first, name):
                raise InputError(
                    f"{model.name}: other {name} than the first member; an ensemble needs one training set"
                )
        networks.append(model.network())
    return Ensemble(networks)


class FrameToLogits(nn.Module):
    """(frame, *masks) -> logits: a uint8 (1, h, w, 3) frame of the network's size, and (1, K, h / s, w / s).

    A CPU backend runs it. Where the segmenter computes familiarity, score (1,) and energies (1, h',
    w') come after the logits. `masks`: uint8 0 or 1, one for each dropout layer in order of use; without them the graph
    draws them.
    """

    def __init__(self, segmenter: StreamingSegmenter) -> None:
        super().__init__()
        predictor = segmenter.eval().predictor
        self.normalize, network = segmenter.normalize, predictor.get_submodule("network")
        self.network = predictor if isinstance(predictor, WatchedPredictor) else network
        self.dropouts = drawing_dropouts(network)

    def forward(self, frame: Tensor, *masks: Tensor) -> Tensor | tuple[Tensor, ...]:
        self.use_masks(masks)
        image = self.normalize(frame.permute(0, 3, 1, 2))
        return flat(
            self.network.forward_with_scores(image)
            if isinstance(self.network, WatchedPredictor)
            else self.network(image)
        )

    def use_masks(self, masks: tuple[Tensor, ...]) -> None:
        """Sets the masks of the next pass."""
        for position, dropout in enumerate(self.dropouts):
            dropout.masks = [masks[position].float() * dropout.scale] if masks else None

    def mask_shapes(self, height: int, width: int) -> list[tuple[int, ...]]:
        """Returns the shapes of the masks for a frame of h x w."""
        with torch.no_grad(), dropout_calls(self.dropouts) as calls:
            self(torch.zeros(1, height, width, 3, dtype=torch.uint8))
        return [shape for _, shape in calls]


class SharedPart(nn.Module):
    """The network up to its first dropout layer, which all passes share: frame -> tensors."""

    def __init__(self, whole: FrameToLogits) -> None:
        super().__init__()
        self.whole = whole

    def forward(self, frame: Tensor) -> tuple[Tensor, ...]:
        # Copies: OpenVINO's converter (2026.4) takes no output that is one of several results of a layer.
        return tuple(leaf.clone() for leaf in distinct(tree_leaves(self.shared(frame))))

    def shared(self, frame: Tensor) -> Any:
        """Returns the tensors in the network's own nested form."""
        return self.whole.network.prefix(self.whole.normalize(frame.permute(0, 3, 1, 2)))  # type: ignore[operator]


class DrawnPart(nn.Module):
    """The rest of one pass: (*shared, *masks) -> logits[, score, energies].

    shared: the output of `SharedPart` for frames of one size.
    """

    def __init__(self, first: SharedPart, height: int, width: int) -> None:
        super().__init__()
        self.whole = first.whole
        with torch.no_grad():
            leaves, self.form = tree_flatten(first.shared(torch.zeros(1, height, width, 3, dtype=torch.uint8)))
        self.example = distinct(leaves)
        numbers = {id(tensor): number for number, tensor in enumerate(self.example)}
        # (which tensor, or None; else a size or a count)
        self.leaves = [(numbers.get(id(leaf)), None if isinstance(leaf, Tensor) else leaf) for leaf in leaves]

    def forward(self, *tensors: Tensor) -> Tensor | tuple[Tensor, ...]:
        self.whole.use_masks(tensors[len(self.example) :])
        leaves = [leaf if number is None else tensors[number] for number, leaf in self.leaves]
        return flat(self.whole.network.suffix(tree_unflatten(leaves, self.form)))  # type: ignore[operator]


def flat(seen: Tensor | tuple[Tensor, FrameScores]) -> Tensor | tuple[Tensor, ...]:
    """Flattens logits and familiarity into tensors."""
    return seen if isinstance(seen, Tensor) else (seen[0], *seen[1])


def distinct(leaves: list[Any]) -> list[Tensor]:
    """Returns the tensors among `leaves`, each once: a feature map may be a skip connection as well."""
    return list({id(leaf): leaf for leaf in leaves if isinstance(leaf, Tensor)}.values())
