"""Vision transformer with optional local attention, PiT, which pools patches between three stages, and Swin on maps.

Each attention and each MLP is a separate part of the chain, so that a study can read features between parts or leave
parts out. Local attention and both heads of a vision transformer are variants that arXiv 2202.06709 compares.
"""

from collections import OrderedDict
from collections.abc import Iterator
from functools import partial

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from steadyseg.classification.networks.attention import WindowAttention, attend
from steadyseg.classification.networks.chain import Block, Chain, dropout, skip_branch, skip_rates
from steadyseg.classification.networks.heads import head
from steadyseg.classification.networks.layout import HEAD_WIDTHS, MODELS, PIT_BLOCKS, SWIN_BLOCKS, VIT_PATCH, VIT_SIDE
from steadyseg.classification.options import ClassifierOptions
from steadyseg.core.errors import InputError
from steadyseg.core.stages import Stage

MLP_RATIO = 4
STD = 0.02
"""Standard deviation of all initial weights, the positions and the class token."""


class ResidualUnit(Block):
    """x + branch(norm(x)) on tokens or a map; MC dropout after the branch, which stochastic depth may leave out."""

    def __init__(self, norm: nn.Module, branch: nn.Module, rate: float, skipped: float) -> None:
        super().__init__()
        self.norm, self.branch, self.dropout = norm, branch, dropout(rate)
        self.skip_branch = skip_branch(skipped)

    def prefix(self, x: Tensor) -> tuple[Tensor, Tensor]:
        return self.branch(self.norm(x)), x

    def suffix(self, shared: tuple[Tensor, Tensor]) -> Tensor:
        branch, x = shared
        return x + self.skip_branch(self.dropout(branch))


class TokenAttention(nn.Module):
    """Multi-head self-attention (B, T, C) -> (B, T, C); q, k and v have no bias, the output projection has a bias."""

    bias: Tensor | None

    def __init__(self, channels: int, heads: int, seen: Tensor | None) -> None:
        """`seen` (T, T) is true where token i attends to token j; None lets each token attend to all."""
        super().__init__()
        self.heads = heads
        self.to_qkv = nn.Linear(channels, 3 * channels, bias=False)
        self.to_out = nn.Linear(channels, channels)
        hidden = None if seen is None else torch.zeros(seen.shape).masked_fill(~seen, float("-inf"))
        self.register_buffer("bias", hidden, persistent=False)

    def forward(self, x: Tensor) -> Tensor:
        batch, tokens, channels = x.shape
        q, k, v = self.to_qkv(x).reshape(batch, tokens, 3, self.heads, -1).permute(2, 0, 3, 1, 4)  # (B, heads, T, d)
        mixed = attend(q, k, v, self.bias)
        return self.to_out(mixed.transpose(1, 2).reshape(batch, tokens, channels))


class Tokens(nn.Module):
    """(B, 3, s, s) -> (B, T, C): a linear layer of each patch, the class token before them, learnt positions added.

    Patches begin `stride` pixels apart.
    """

    def __init__(self, channels: int, side: int, patch: int, class_token: bool, stride: int) -> None:
        super().__init__()
        self.side, points = side, ((side - patch) // stride + 1) ** 2
        self.patches = nn.Conv2d(3, channels, patch, stride)
        # Flat, because the optimiser takes a tensor of one dimension for a bias and does not decay it.
        self.class_token = nn.Parameter(STD * torch.randn(channels)) if class_token else None
        self.positions = nn.Parameter(STD * torch.randn((points + class_token) * channels))

    def forward(self, x: Tensor) -> Tensor:
        if tuple(x.shape[-2:]) != (self.side, self.side):
            height, width = x.shape[-2:]
            raise InputError(
                f"this vision transformer was built for {self.side} x {self.side} pixels and got {height} x {width}; "
                "set img_size to the pictures' side or resize them"
            )
        tokens = self.patches(x).flatten(2).mT
        if self.class_token is not None:
            tokens = torch.cat([self.class_token.expand(tokens.shape[0], 1, -1), tokens], 1)
        return tokens + self.positions.view(tokens.shape[1:])


class TokenHead(nn.Module):
    """(B, T, C) -> (B, K): LayerNorm, then the class token or the mean of all tokens, then a linear layer."""

    def __init__(self, channels: int, num_classes: int, class_token: bool) -> None:
        super().__init__()
        self.norm, self.linear, self.class_token = nn.LayerNorm(channels), nn.Linear(channels, num_classes), class_token

    def forward(self, x: Tensor) -> Tensor:
        x = self.norm(x)
        return self.linear(x[:, 0] if self.class_token else x.mean(1))


class TokenPooling(nn.Module):
    """(B, 1 + h w, C) -> (B, 1 + ceil(h / 2) ceil(w / 2), 2 C).

    A depthwise 3x3 convolution of stride 2 pools the map of the patches; a linear layer widens the class token.
    """

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.patches = nn.Conv2d(channels, 2 * channels, 3, 2, padding=1, groups=channels)
        self.class_token = nn.Linear(channels, 2 * channels)

    def forward(self, x: Tensor) -> Tensor:
        patches = self.patches(patch_map(x, class_token=True)).flatten(2).mT
        return torch.cat([self.class_token(x[:, :1]), patches], 1)


class VisionTransformer(Chain):
    """A chain of stem, attention1, mlp1, attention2, ... and head; stages are the maps (B, C, h, w) of the patches."""

    class_token: bool

    def named_stages(self) -> dict[str, Stage]:
        pick = partial(patch_map, class_token=self.class_token)
        return {name: Stage(stage.module, pick) for name, stage in super().named_stages().items()}


def vit(options: ClassifierOptions, num_classes: int) -> Chain:
    """Builds a vision transformer or a PiT: (B, 3, s, s) -> (B, K) for s = `img_size` (32 without it).

    Vision transformer: `channels` channels in heads of 64, LayerNorm before each branch, GELU, learnt positions
    (Dosovitskiy et al. 2021, arXiv 2010.11929). vit12 of 192 channels is ViT-Ti.

    PiT (Heo et al. 2021, arXiv 2103.16302): patches overlap by half; `channels` channels in heads of 32, twice as many
    after each pooling. pit12 of 64 channels is PiT-Ti. Parts: stem, attention1, mlp1, ..., pool2 before the second
    stage, ..., head.
    """
    side, patch = options.img_size or VIT_SIDE, options.patch_size or VIT_PATCH
    class_token = (options.head or "cls") == "cls"
    seen = local_mask(side // patch, options.attention_window, class_token) if options.attention_window else None
    stride = max(1, patch // 2) if MODELS[options.network][0] == "pit" else patch
    chain = VisionTransformer(OrderedDict(stem=Tokens(options.channels, side, patch, class_token, stride)))
    chain.class_token = class_token
    for number, (stage, place, channels, heads, skip) in enumerate(blocks_of(options), start=1):
        if stage and not place:
            chain.add_module(f"pool{stage + 1}", TokenPooling(channels // 2))
        attention = TokenAttention(channels, heads, seen)
        for name, branch in (("attention", attention), ("mlp", mlp(channels))):
            unit = ResidualUnit(nn.LayerNorm(channels), branch, options.dropout, skip)
            chain.add_module(f"{name}{number}", unit)
    chain.add_module("head", TokenHead(channels, num_classes, class_token))
    initialise_linear(chain)
    return chain


def blocks_of(options: ClassifierOptions) -> Iterator[tuple[int, int, int, int, float]]:
    """Yields stage, place in it, channels, heads and rate of stochastic depth of every pair of attention and MLP.

    Stages and places count from 0. There are as many heads as published for the width.
    """
    family, depth = MODELS[options.network]
    counts = PIT_BLOCKS[depth] if family == "pit" else SWIN_BLOCKS[depth] if family == "swin" else (depth,)
    heads, skipped = max(1, options.channels // HEAD_WIDTHS[family]), skip_rates(options.stochastic_depth, sum(counts))
    places = [(stage, place) for stage, count in enumerate(counts) for place in range(count)]
    for (stage, place), skip in zip(places, skipped, strict=True):
        yield stage, place, options.channels * 2**stage, heads * 2**stage, skip


def mlp(channels: int) -> nn.Sequential:
    """Returns an MLP on the last dimension, with four times as many hidden channels and GELU."""
    hidden = MLP_RATIO * channels
    return nn.Sequential(nn.Linear(channels, hidden), nn.GELU(), nn.Linear(hidden, channels))


def local_mask(side: int, window: int, class_token: bool) -> Tensor:
    """Returns (T, T) bool for side x side patches in rows, true where token i attends to token j.

    A patch attends to patches whose row and column differ by at most window // 2, or to all if the window covers
    the grid. The class token attends to all tokens, and all tokens to the class token.
    """
    reach = side if window >= side else window // 2
    place = torch.arange(side)
    near = (place[:, None] - place[None]).abs() <= reach
    seen = near[:, None, :, None] & near[None, :, None, :]  # (row i, column i, row j, column j)
    return F.pad(seen.reshape(side**2, side**2), (int(class_token), 0, int(class_token), 0), value=True)


def patch_map(tokens: Tensor, class_token: bool) -> Tensor:
    """Returns the map (B, C, h, w) of the patches among the tokens (B, T, C)."""
    patches = tokens[:, int(class_token) :]
    side = round(patches.shape[1] ** 0.5)
    return patches.mT.unflatten(2, (side, side))


def initialise_linear(network: nn.Module) -> None:
    """Draws truncated normal weights, and zero biases, for linear layers and for Swin's 1x1 convolutions."""
    maps = [layer for m in network.modules() if isinstance(m, WindowAttention) for layer in (m.to_qkv, m.to_out)]
    for module in [m for m in network.modules() if isinstance(m, nn.Linear)] + maps:
        nn.init.trunc_normal_(module.weight, std=STD)
        if module.bias is not None:
            nn.init.zeros_(module.bias)


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
    width, patch, window = options.channels, options.patch_size or PATCH, options.attention_window or WINDOW
    chain = Chain(OrderedDict(stem=nn.Sequential(nn.Conv2d(3, width, patch, patch), ChannelNorm(width))))
    for number, (stage, place, channels, heads, skip) in enumerate(blocks_of(options), start=1):
        if stage and not place:
            merge = nn.Sequential(ChannelNorm(channels // 2), nn.Conv2d(channels // 2, channels, 2, 2, bias=False))
            chain.add_module(f"merge{stage + 1}", merge)
        shift = window // 2 if place % 2 else 0
        attention = WindowAttention(channels, channels, heads, channels // heads, window, shift)
        for name, branch in (("attention", attention), ("mlp", PointMLP(channels))):
            unit = ResidualUnit(ChannelNorm(channels), branch, options.dropout, skip)
            chain.add_module(f"{name}{number}", unit)
    chain.add_module("norm", ChannelNorm(channels))
    chain.add_module("head", head("gap", channels, num_classes))
    initialise_linear(chain)
    return chain
