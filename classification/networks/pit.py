"""Pooling-based vision transformer: a vision transformer whose patches are pooled between three stages."""

from collections import OrderedDict

import torch
from torch import Tensor, nn

from classification.networks.chain import Chain, skip_rates
from classification.networks.layout import MODELS, PIT_BLOCKS, VIT_PATCH, VIT_SIDE, heads_of
from classification.networks.vit import TokenHead, Tokens, VisionTransformer, add_pair, initialise_linear, patch_map
from classification.options import ClassifierOptions


class TokenPooling(nn.Module):
    """(B, 1 + h w, C) -> (B, 1 + ceil(h / 2) ceil(w / 2), 2 C).

    A depthwise 3x3 convolution of stride 2 for the map of the patches, a linear layer for the class token.
    """

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.patches = nn.Conv2d(channels, 2 * channels, 3, 2, padding=1, groups=channels)
        self.class_token = nn.Linear(channels, 2 * channels)

    def forward(self, x: Tensor) -> Tensor:
        patches = self.patches(patch_map(x, class_token=True)).flatten(2).mT
        return torch.cat([self.class_token(x[:, :1]), patches], 1)


def pit(options: ClassifierOptions, num_classes: int) -> Chain:
    """Builds a PiT: (B, 3, s, s) -> (B, K) for s = `img_size` (Heo et al. 2021, arXiv 2103.16302).

    Patches overlap by half; `channels` channels in heads of 32, twice as many after each pooling. pit12 of 64 channels
    is PiT-Ti. Parts: stem, attention1, mlp1, ..., pool2 before the second stage, ..., head.
    """
    _, depth = MODELS[options.network]
    blocks, patch = PIT_BLOCKS[depth], options.patch_size or VIT_PATCH
    skipped = iter(skip_rates(options.stochastic_depth, sum(blocks)))
    stem = Tokens(options.channels, options.img_size or VIT_SIDE, patch, class_token=True, stride=max(1, patch // 2))
    chain, number = VisionTransformer(OrderedDict(stem=stem)), 0
    chain.class_token = True
    for i, (count, heads) in enumerate(zip(blocks, heads_of(options), strict=True)):
        channels = options.channels * 2**i
        if i:
            chain.add_module(f"pool{i + 1}", TokenPooling(channels // 2))
        for _ in range(count):
            number += 1
            add_pair(chain, number, channels, heads, options.dropout, next(skipped))
    chain.add_module("head", TokenHead(channels, num_classes, class_token=True))
    initialise_linear(chain)
    return chain
