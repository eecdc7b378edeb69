"""The U-Net of the papers: additive skips, ReLU before BatchNorm, optional MC dropout and spatial smoothing."""

from typing import NamedTuple

import torch.nn.functional as F
from torch import Tensor, nn

from core.dropout import Dropout
from core.errors import InputError
from core.smoothing import SpatialSmoothing
from core.stages import Stage
from seg.options import UNetOptions


class Flow(NamedTuple):
    """The current map and the skips that no decoder stage has used yet, shallowest first."""

    x: Tensor
    skips: tuple[Tensor, ...] = ()


class ConvBlock(nn.Sequential):
    """Returns `count` times 3x3 convolution (with bias) -> ReLU -> BatchNorm, in the published order."""

    def __init__(self, channels_in: int, channels_out: int, count: int) -> None:
        layers: list[nn.Module] = []
        for i in range(count):
            layers.append(nn.Conv2d(channels_in if i == 0 else channels_out, channels_out, 3, padding=1))
            layers += [nn.ReLU(inplace=True), nn.BatchNorm2d(channels_out)]
        super().__init__(*layers)


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
        self.convs = ConvBlock(channels_in, channels_out, count=2 if number <= 2 else 3)

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
    """Decoder stage: transposed convolution to the skip's size, ReLU, BatchNorm, sum with the skip, convolutions."""

    def __init__(self, channels_in: int, channels_out: int, count: int) -> None:
        super().__init__()
        # output_padding=1 gives 2n, cropped to the skip (2n or 2n - 1): exports with dynamic sizes, output_size does
        # not.
        self.up = nn.ConvTranspose2d(channels_in, channels_out, 3, stride=2, padding=1, output_padding=1, bias=False)
        nn.init.xavier_uniform_(self.up.weight)  # Glorot-uniform, as published
        self.norm = nn.BatchNorm2d(channels_out)
        self.convs = ConvBlock(channels_out, channels_out, count)

    def forward(self, flow: Flow) -> Flow:
        *skips, skip = flow.skips
        x = self.up(flow.x)[..., : skip.shape[-2], : skip.shape[-1]]
        return Flow(self.convs(self.norm(F.relu(x)) + skip), tuple(skips))


class UNet(nn.Module):
    """(B, 3, h, w) normalised image -> (B, K, h, w) logits; any h, w >= 2 ** (depth - 1).

    forward(x) == suffix(prefix(x)); N dropout passes share `prefix`, which runs once.
    """

    def __init__(self, num_classes: int, options: UNetOptions = UNetOptions()) -> None:  # noqa: B008 (frozen)
        super().__init__()
        _check(num_classes, options)
        self.options, names = options, stage_names(options)
        depth, widths = options.depth, [options.channels * 2**i for i in range(options.depth)]
        stages: list[nn.Module] = []
        for i in range(depth):
            stages.append(EncoderStage(options, i + 1, 3 if i == 0 else widths[i - 1], widths[i]))
        for i in reversed(range(depth - 1)):
            stages.append(DecoderStage(widths[i + 1], widths[i], count=2 if i == 0 else 3))
        self.stages = nn.ModuleList(stages)
        has_dropout = [options.dropout != 0 and name in options.dropout_places for name in names]
        self.dropouts = nn.ModuleList([Dropout(options.dropout) if has else nn.Identity() for has in has_dropout])
        self.head = nn.Conv2d(widths[0], num_classes, 1)

    def forward(self, x: Tensor) -> Tensor:
        return self.suffix(self.prefix(x))

    def prefix(self, x: Tensor) -> tuple[int, Flow]:
        """Runs the stages up to the first dropout layer that draws; returns (stages done, flow before that layer)."""
        flow = Flow(x)
        for done, (stage, dropout) in enumerate(zip(self.stages, self.dropouts, strict=True), start=1):  # noqa: B007
            flow = stage(flow)
            if isinstance(dropout, Dropout) and dropout.draws:
                break
        return done, flow

    def suffix(self, shared: tuple[int, Flow]) -> Tensor:
        """Turns the result of `prefix` into logits (B, K, h, w): the random part, which may run any number of times."""
        done, flow = shared
        flow = flow._replace(x=self.dropouts[done - 1](flow.x))
        for stage, dropout in zip(self.stages[done:], self.dropouts[done:], strict=True):
            flow = stage(flow)
            flow = flow._replace(x=dropout(flow.x))
        return self.head(flow.x)

    def named_stages(self) -> dict[str, Stage]:
        """Output of each stage, before its dropout."""
        points = [Stage(stage, lambda flow: flow.x) for stage in self.stages]
        return dict(zip(stage_names(self.options), points, strict=True))


def stage_names(options: UNetOptions) -> list[str]:
    """Stages by name: enc1..encD, dec(D+1)..dec(2D-1), numbered as in the published layout."""
    depth = options.depth
    return [f"enc{n}" for n in range(1, depth + 1)] + [f"dec{n}" for n in range(depth + 1, 2 * depth)]


def _check(num_classes: int, options: UNetOptions) -> None:
    if num_classes < 2:
        raise InputError(f"a network needs two or more classes, got {num_classes}")
    if options.skip not in ("before", "after"):
        raise InputError(f"unknown skip {options.skip!r}; choose from before, after")
    if not 1 <= options.channels <= 512 or not 2 <= options.depth <= 7:
        raise InputError(f"channels must be 1..512 and depth 2..7, got {options.channels} and {options.depth}")
    names = stage_names(options)
    for place in options.dropout_places:
        if place not in names:
            raise InputError(f"unknown dropout place {place!r}; choose from {', '.join(names)}")
