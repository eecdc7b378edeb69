"""Swin transformer on maps: attention in windows that shift from block to block, patches merged between the stages."""

from collections import OrderedDict

from torch import Tensor, nn

from steadyseg.classification.networks.attention import WindowAttention
from steadyseg.classification.networks.chain import Chain, skip_rates
from steadyseg.classification.networks.heads import pooled_head
from steadyseg.classification.networks.layout import MODELS, SWIN_BLOCKS, heads_of
from steadyseg.classification.networks.vit import STD, ResidualUnit, initialise_linear, mlp
from steadyseg.classification.options import ClassifierOptions

PATCH, WINDOW = 1, 4
"""Sides in pixels and in points, as published for CIFAR."""


class ChannelNorm(nn.LayerNorm):
    """LayerNorm over the channels of each point of a map (B, C, H, W)."""

    def forward(self, x: Tensor) -> Tensor:
        return super().forward(x.permute(0, 2, 3, 1)).permute(0, 3, 1, 2)


class PointMLP(nn.Module):
    """The MLP of a transformer at each point of a map (B, C, H, W)."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.layers = mlp(channels)

    def forward(self, x: Tensor) -> Tensor:
        return self.layers(x.permute(0, 2, 3, 1)).permute(0, 3, 1, 2)


def swin(options: ClassifierOptions, num_classes: int) -> Chain:
    """Builds a Swin transformer: (B, 3, h, w) -> (B, K) (Liu et al. 2021, arXiv 2103.14030).

    As in the code of arXiv 2202.06709, the heads share the position table and a strided convolution merges patches.
    Swin-T is swin12 with 96 channels, patches of 4 and windows of 7. Parts: stem, attention1, mlp1, ..., merge2 before
    the second stage, ..., norm, head.
    """
    _, depth = MODELS[options.network]
    blocks, width = SWIN_BLOCKS[depth], options.channels
    patch, window = options.patch_size or PATCH, options.attention_window or WINDOW
    skipped = iter(skip_rates(options.stochastic_depth, sum(blocks)))
    stem = nn.Sequential(nn.Conv2d(3, width, patch, patch), ChannelNorm(width))
    chain, number = Chain(OrderedDict(stem=stem)), 0
    for i, (count, heads) in enumerate(zip(blocks, heads_of(options), strict=True)):
        channels = width * 2**i
        if i:
            merge = nn.Sequential(ChannelNorm(channels // 2), nn.Conv2d(channels // 2, channels, 2, 2, bias=False))
            chain.add_module(f"merge{i + 1}", merge)
        for j in range(count):
            number, rate, skip = number + 1, options.dropout, next(skipped)
            shift = window // 2 if j % 2 else 0
            attention = WindowAttention(channels, channels, heads, channels // heads, window, shift)
            chain.add_module(f"attention{number}", ResidualUnit(ChannelNorm(channels), attention, rate, skip))
            chain.add_module(f"mlp{number}", ResidualUnit(ChannelNorm(channels), PointMLP(channels), rate, skip))
    chain.add_module("norm", ChannelNorm(channels))
    chain.add_module("head", pooled_head("gap", channels, num_classes))
    initialise_linear(chain)
    for module in chain.modules():  # its 1x1 convolutions are the linear layers of other implementations
        if isinstance(module, WindowAttention):
            for name, tensor in [*module.to_qkv.named_parameters(), *module.to_out.named_parameters()]:
                nn.init.zeros_(tensor) if name == "bias" else nn.init.trunc_normal_(tensor, std=STD)
    return chain
