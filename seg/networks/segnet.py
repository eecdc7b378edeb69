"""SegNet (arXiv 1511.00561) as in the VQ-BNN paper: four pools, which the decoder undoes at the places of the maxima.

With dropout layers it is Bayesian SegNet (arXiv 1511.02680).
"""

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from steadyseg.seg.networks.staged import Flow, StagedNetwork, require_layout
from steadyseg.seg.options import SegNetOptions

ENCODER = ((1, 1), (2, 2), (4, 4, 4), (8, 8, 8), (8, 8, 8))
"""Output channels of each stage's convolutions, in units of the first stage's; all stages but the last pool."""
DECODER = ((8, 8, 8), (8, 8, 4), (4, 4, 2), (2, 1), (1,))
"""Output channels of the decoder's convolutions; all stages but the first begin by undoing a pool."""


class ConvBlock(nn.Sequential):
    """3x3 convolutions (with bias), each followed by BatchNorm and ReLU, in the published order."""

    def __init__(self, channels_in: int, widths: Sequence[int]) -> None:
        layers: list[nn.Module] = []
        for before, width in zip((channels_in, *widths), widths, strict=False):
            layers += [nn.Conv2d(before, width, 3, padding=1), nn.BatchNorm2d(width), nn.ReLU(inplace=True)]
        super().__init__(*layers)


class EncoderStage(nn.Module):
    """Encoder stage: convolutions, then max pooling of 2x2, whose places of maxima are left for the decoder."""

    def __init__(self, channels_in: int, widths: Sequence[int], pools: bool) -> None:
        super().__init__()
        self.convs, self.pools = ConvBlock(channels_in, widths), pools

    def forward(self, flow: Flow) -> Flow:
        x = self.convs(flow.x)
        if not self.pools:
            return flow._replace(x=x)
        pooled, indices = F.max_pool2d(x, 2, ceil_mode=True, return_indices=True)
        return Flow(pooled, (*flow.skips, maxima(indices, x.shape[-2], x.shape[-1])))


class DecoderStage(nn.Module):
    """Decoder stage: puts each value back where its maximum was found, zeros around it, and convolves."""

    def __init__(self, channels_in: int, widths: Sequence[int], unpools: bool) -> None:
        super().__init__()
        self.convs, self.unpools = ConvBlock(channels_in, widths), unpools

    def forward(self, flow: Flow) -> Flow:
        if not self.unpools:
            return flow._replace(x=self.convs(flow.x))
        *skips, places = flow.skips
        x = F.interpolate(flow.x, scale_factor=2.0)[..., : places.shape[-2], : places.shape[-1]]  # nearest
        x = x * places.to(x.dtype)
        return Flow(self.convs(x), tuple(skips))


class SegNet(StagedNetwork):
    """(B, 3, h, w) normalised image -> (B, K, h, w) logits, for any h and w."""

    has_ties = True
    """The maximum of two nearly equal values may lie in either place, by rounding."""

    def __init__(self, num_classes: int, options: SegNetOptions = SegNetOptions()) -> None:  # noqa: B008 (frozen)
        first = options.segnet_channels
        require_layout(num_classes, first)
        stages, channels = list[nn.Module](), 3
        for number, units in enumerate(ENCODER, start=1):
            stages.append(EncoderStage(channels, [first * unit for unit in units], pools=number < len(ENCODER)))
            channels = first * units[-1]
        for number, units in enumerate(DECODER):
            stages.append(DecoderStage(channels, [first * unit for unit in units], unpools=number > 0))
            channels = first * units[-1]
        head = nn.Conv2d(channels, num_classes, 1)
        depth, places = len(ENCODER), options.segnet_dropout_places
        super().__init__(stages[:depth], stages[depth:], head, options.segnet_dropout, places)
        self.options = options


def maxima(indices: Tensor, height: int, width: int) -> Tensor:
    """(B, C, h', w') flat indices of 2x2 maxima in maps of height x width -> (B, C, height, width) bool: True there.

    `F.max_unpool2d` scatters by the indices, which ONNX cannot express for free sizes. A comparison of a window's index
    with its four pixels' indices gives the same in every runtime.
    """
    batch, channels, rows, columns = indices.shape
    own = torch.arange(2 * rows, device=indices.device)[:, None] * width + torch.arange(2 * columns).to(indices.device)
    found = indices[..., :, None, :, None] == own.reshape(rows, 2, columns, 2)
    return found.reshape(batch, channels, 2 * rows, 2 * columns)[..., :height, :width]
