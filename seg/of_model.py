"""The computation of a frame (`seg/streaming.py`) with the network of a model: the start of every executor."""

from collections.abc import Sequence

from torch import nn

from steadyseg.core.errors import InputError
from steadyseg.core.method import Method
from steadyseg.core.model.model import Model
from steadyseg.core.novelty.stored import novelty_head
from steadyseg.core.predictors import Ensemble
from steadyseg.seg.streaming import StreamingSegmenter


def streaming_module(
    model: Model,
    method: Method,
    *,
    network: nn.Module | None = None,
    members: Sequence[Model] = (),
    size: int | None = None,
) -> StreamingSegmenter:
    """Returns the computation of a frame with the novelty of the model's record; an ensemble has no novelty.

    `network` replaces the model's own, and `size` its height in pixels.
    """
    meta = model.meta
    if members:
        network = ensemble([model, *members])
    elif network is None:
        network = model.network()
    head = None if members else novelty_head(model, method)
    return StreamingSegmenter(network, meta.mean, meta.std, size or meta.height, method, head)


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
