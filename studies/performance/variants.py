"""One checkpoint's weights as three networks: without spatial smoothing, as shipped, and with dropout drawn."""

import copy
import dataclasses
from typing import Literal

from torch import nn

from steadyseg.core.dropout import has_dropout
from steadyseg.core.insertion import PrependedLayer
from steadyseg.core.method import MethodOptions, ModeName, is_temporal
from steadyseg.core.model.checkpoint import CheckpointMeta
from steadyseg.core.model.int8 import Ranges, round_convolutions
from steadyseg.core.smoothing import SpatialSmoothing
from steadyseg.runtime.torch_backend import torch_backend
from steadyseg.seg.networks.unet import UNet
from steadyseg.seg.pretrained import read_segmenter
from steadyseg.seg.streaming import StreamingSegmenter

Variant = Literal["plain", "quiet", "drawing"]


class Subject:
    """A checkpoint under test. Raises InputError for whatever is no checkpoint."""

    def __init__(self, model: str, height: int | None) -> None:
        self.model = read_segmenter(model)
        self.meta: CheckpointMeta = self.model.meta
        opened = torch_backend(self.model, MethodOptions(mode="dnn").resolve(self.meta), size=height)
        self.height, self.temperature = opened.module.height, opened.method.temperature
        self._head = opened.module.head
        self._network = opened.module.predictor.get_submodule("network")

    @property
    def head_stride(self) -> int:
        return getattr(self._network, "head_stride", 1)

    @property
    def has_dropout(self) -> bool:
        return has_dropout(self._network)

    @property
    def has_smoothing(self) -> bool:
        return any(isinstance(module, SpatialSmoothing) for module in self._network.modules())

    def network(self, variant: Variant, ranges: Ranges | None = None) -> nn.Module:
        """Returns a new network; its user sets its dropout and its device. With `ranges` it computes in int8."""
        network = copy.deepcopy(self._network)
        if variant == "plain" and isinstance(network, UNet):
            network = without_smoothing(network)
        round_convolutions(network, ranges or {})  # named as they are behind the smoothing of other networks
        return without_smoothing(network) if variant == "plain" else network

    def module(
        self,
        network: nn.Module,
        mode: ModeName,
        samples: int | None = None,
        motion: bool = False,
        *,
        watched: bool = False,
    ) -> StreamingSegmenter:
        """The whole step around a network. `watched`: with familiarity, where the checkpoint has statistics for it."""
        options = MethodOptions(mode, samples, motion=motion and is_temporal(mode))
        method = dataclasses.replace(options.resolve(), temperature=self.temperature)
        head = self._head if watched else None
        return StreamingSegmenter(network, self.meta.mean, self.meta.std, self.height, method, head)


def without_smoothing(network: nn.Module) -> nn.Module:
    """Removes the spatial smoothing of a network, in place or in a new one; smoothing has no weights."""
    if isinstance(network, UNet) and network.options.smoothing:
        # Its pooling rounds the other way where no blur grows the map, so it is built again.
        plain = UNet(network.head.out_channels, dataclasses.replace(network.options, smoothing=False))
        plain.load_state_dict(network.state_dict())
        return plain.eval()
    for owner in list(network.modules()):
        for name, child in owner.named_children():
            if isinstance(child, PrependedLayer) and isinstance(child.layer, SpatialSmoothing):
                setattr(owner, name, child.module)
    return network
