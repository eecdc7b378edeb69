"""Deep supervision: auxiliary heads predict the labels from the decoder's coarser stages, in training only."""

from contextlib import ExitStack
from typing import Any

import torch
from torch import Tensor, nn

from steadyseg.core.errors import InputError
from steadyseg.seg.networks.staged import StagedNetwork


class DeepSupervision(nn.Module):
    """The network with a 1x1 head on each decoder stage but the last.

    In training (B, 3, h, w) -> a tuple: the network's logits (B, K, h', w'), then each head's logits at its stage's
    size. In evaluation the network's logits alone. The checkpoint stores `network`, without the heads.
    """

    def __init__(self, network: nn.Module, num_classes: int) -> None:
        super().__init__()
        self.network = network
        self.heads = nn.ModuleList(nn.Conv2d(width, num_classes, 1) for width in self._widths())

    def forward(self, x: Tensor) -> Tensor | tuple[Tensor, ...]:
        if not self.training:
            logits: Tensor = self.network(x)
            return logits
        logits, stages = self._watched(x)
        return (logits, *(head(stage) for head, stage in zip(self.heads, stages, strict=True)))

    def _watched(self, x: Tensor) -> tuple[Tensor, list[Tensor]]:
        """Returns the logits and the output of each stage."""
        seen: list[Tensor] = []

        def keep(_: nn.Module, __: Any, output: Any) -> None:
            seen.append(output if isinstance(output, Tensor) else output.x)

        with ExitStack() as hooks:  # hooks for this pass alone, so that copies of the network have no hooks
            for stage in decoder_stages(self.network):
                hooks.enter_context(stage.register_forward_hook(keep))
            return self.network(x), seen

    def _widths(self) -> list[int]:
        was = self.network.training
        with torch.no_grad():
            _, stages = self.eval()._watched(torch.zeros(1, 3, 64, 64))
        self.network.train(was)
        return [stage.shape[1] for stage in stages]


def decoder_stages(network: nn.Module) -> list[nn.Module]:
    """Returns all stages but the last; InputError where a network's decoder has no list of stages."""
    if isinstance(network, StagedNetwork):
        return list(network.stages)[network.encoder_depth : -1]
    blocks = getattr(network.get_submodule("model.decoder"), "blocks", None)
    if not isinstance(blocks, nn.ModuleList | nn.ModuleDict) or len(blocks) < 2:
        raise InputError("auxiliary heads need a decoder with several stages, such as Unet's; use --config auxiliary=0")
    return list(blocks.values() if isinstance(blocks, nn.ModuleDict) else blocks)[:-1]
