"""The U-Net of the papers: additive skips, optional MC dropout and spatial smoothing."""

import torch.nn.functional as F
from torch import nn

from steadyseg.core.errors import InputError
from steadyseg.core.smoothing import SpatialSmoothing
from steadyseg.seg.networks.staged import Flow, StagedNetwork, require_layout
from steadyseg.seg.options import LayerOrder, UNetOptions


class ConvBlock(nn.Sequential):
    """Returns `count` times 3x3 convolution (with bias), ReLU and BatchNorm; `order` says which of the two is first."""

    def __init__(self, channels_in: int, channels_out: int, count: int, order: LayerOrder) -> None:
        layers: list[nn.Module] = []
        for i in range(count):
            layers.append(nn.Conv2d(channels_in if i == 0 else channels_out, channels_out, 3, padding=1))
            layers += norm_and_relu(channels_out, order)
        super().__init__(*layers)


def norm_and_relu(channels: int, order: LayerOrder) -> list[nn.Module]:
    """Returns BatchNorm and ReLU in this order."""
    layers: list[nn.Module] = [nn.BatchNorm2d(channels), nn.ReLU(inplace=True)]
    return layers if order == "conv-bn-relu" else layers[::-1]


class EncoderStage(nn.Module):
    """Encoder stage: smoothing and pooling of its input (not in the first stage), convolutions, skip."""

    def __init__(self, options: UNetOptions, number: int, channels_in: int, channels_out: int) -> None:
        super().__init__()
        self.pools = number > 1
        self.leaves_skip = number < options.depth
        smooths = options.smoothing and self.pools
        self.smooth: nn.Module = nn.Identity()
        if smooths:
            self.smooth = SpatialSmoothing(options.prob, options.blur, options.padding, channels=channels_in)
        self.skip_after_smoothing = smooths and options.skip == "after"
        # The published blur grows the map by one, so floor pooling gives ceil(n / 2), the size of "same" pooling.
        grows = smooths and options.blur == 2 and options.padding == "published"
        self.pool = nn.MaxPool2d(2, ceil_mode=not grows)
        self.convs = ConvBlock(channels_in, channels_out, count=2 if number <= 2 else 3, order=options.order)

    def forward(self, flow: Flow) -> Flow:
        x, skips = flow
        if self.pools:
            smoothed = self.smooth(x)
            if self.skip_after_smoothing:
                skips = (*skips[:-1], smoothed[..., : x.shape[-2], : x.shape[-1]])
            x = self.pool(smoothed)
        x = self.convs(x)
        return Flow(x, (*skips, x) if self.leaves_skip else skips)


class DecoderStage(nn.Module):
    """Decoder stage: transposed convolution to the skip's size, ReLU and BatchNorm, sum with the skip, convolutions."""

    def __init__(self, channels_in: int, channels_out: int, count: int, order: LayerOrder) -> None:
        super().__init__()
        # output_padding=1 gives 2n, cropped to the skip (2n or 2n - 1): exports with dynamic sizes, output_size does
        # not.
        self.up = nn.ConvTranspose2d(channels_in, channels_out, 3, stride=2, padding=1, output_padding=1, bias=False)
        nn.init.xavier_uniform_(self.up.weight)  # Glorot-uniform, as published
        self.norm = nn.BatchNorm2d(channels_out)
        self.norm_first = order == "conv-bn-relu"
        self.convs = ConvBlock(channels_out, channels_out, count, order)

    def forward(self, flow: Flow) -> Flow:
        *skips, skip = flow.skips
        x = self.up(flow.x)[..., : skip.shape[-2], : skip.shape[-1]]
        x = F.relu(self.norm(x)) if self.norm_first else self.norm(F.relu(x))
        return Flow(self.convs(x + skip), tuple(skips))


class UNet(StagedNetwork):
    """(B, 3, h, w) normalised image -> (B, K, h, w) logits; any h, w >= 2 ** (depth - 1)."""

    def __init__(self, num_classes: int, options: UNetOptions = UNetOptions()) -> None:  # noqa: B008 (frozen)
        require_layout(num_classes, options.channels)
        if not 2 <= options.depth <= 7:
            raise InputError(f"depth must be 2..7, got {options.depth}")
        depth, widths = options.depth, [options.channels * 2**i for i in range(options.depth)]
        encoder = [EncoderStage(options, i + 1, 3 if i == 0 else widths[i - 1], widths[i]) for i in range(depth)]
        decoder = [
            DecoderStage(widths[i + 1], widths[i], 2 if i == 0 else 3, options.order)
            for i in reversed(range(depth - 1))
        ]
        head = nn.Conv2d(widths[0], num_classes, 1)
        super().__init__(encoder, decoder, head, options.dropout, options.dropout_places)
        self.options = options
