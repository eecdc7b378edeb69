"""Classifiers by name, ours and timm's, and the checks of their options."""

import math
from collections.abc import Iterator
from dataclasses import fields, replace
from typing import Any

from torch import nn

from steadyseg.classification.networks.layout import (
    ALTERNET_BLOCKS,
    FAMILIES,
    HEAD_WIDTHS,
    MODELS,
    NOT_FOR_TIMM,
    TIMM,
    TIMM_OPTIONS,
    VIT_PATCH,
    VIT_SIDE,
    without_effect,
)
from steadyseg.classification.networks.plain import alexnet, vgg
from steadyseg.classification.networks.residual import residual
from steadyseg.classification.networks.timm_network import TimmNetwork
from steadyseg.classification.networks.vit import swin, vit
from steadyseg.classification.options import ClassifierOptions
from steadyseg.core.errors import InputError, suggest
from steadyseg.core.options import MAX_NETWORK_PIXELS, read_options, require_ranges, require_types

BUILDERS = {
    "alexnet": alexnet,
    "vgg": vgg,
    "prevgg": vgg,
    **dict.fromkeys(("resnet", "resnext", "wideresnet", "preresnet", "alternet"), residual),
    "vit": vit,
    "pit": vit,
    "swin": swin,
}
OWN_INITIALISATION = ("alexnet", "vit", "pit", "swin")
"""Families without BatchNorm, whose initial scale matters: torch draws AlexNet's weights, transformers their own."""


def build_classifier(options: ClassifierOptions | dict[str, Any], num_classes: int) -> nn.Module:
    """Builds a classifier: (B, 3, h, w) normalised pictures -> (B, K) logits; a dict is a checkpoint's record.

    InputError, in one line, for unknown names, wrong types and options that make no sense together.
    """
    if isinstance(options, dict):  # the weights come with the record
        options = replace(read_options(ClassifierOptions, options, "a classifier"), pretrained=False)
    check_classifier(options)
    if num_classes < 2:
        raise InputError(f"a classifier needs two or more classes, got {num_classes}")
    if options.network not in MODELS:
        return TimmNetwork(options, num_classes)
    family, _ = MODELS[options.network]
    network = BUILDERS[family](options, num_classes)
    if family not in OWN_INITIALISATION:
        # Normal weights of variance 2 / fan-out (He et al. 2015, arXiv 1502.01852, Eq. 14).
        for module in [m for m in network.modules() if isinstance(m, nn.Conv2d)]:
            nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")
    return network


MAX_GRID = 64
"""Patches, or points of a window, on a side: attention compares each of 4,096 with all (ViT-B/16 at 1024 x 1024)."""
RANGES: dict[str, tuple[float, float]] = {
    "channels": (1, 1024),
    "dropout": (0, 255 / 256),
    "stochastic_depth": (0, 1),
    "prob_scale": (1e-3, math.inf),
    "attention_window": (1, MAX_GRID),
    "img_size": (1, math.isqrt(MAX_NETWORK_PIXELS)),
    "patch_size": (1, math.isqrt(MAX_NETWORK_PIXELS)),
}
SMOOTHING_OPTIONS = ("smoothing_places", "prob", "prob_scale", "blur", "padding")
TIMM_SIDE, TIMM_PATCH = 224, 16
GROUPS = 32
"""Groups of ResNeXt's 3x3 convolutions."""


def check_classifier(options: ClassifierOptions) -> None:
    """Raises InputError for the first invalid option. Timm checks the name after `timm:` itself."""
    require_types(options, "option {} of a classifier")
    require_ranges(options, {name: r for name, r in RANGES.items() if getattr(options, name) is not None})
    if fault := next(_faults(options), None):
        raise InputError(fault)


def _faults(options: ClassifierOptions) -> Iterator[str]:
    """Yields what is wrong with the options of any network, then with the options of its family."""
    network, ours = options.network, options.network in MODELS
    if not ours and not network.startswith(TIMM):
        yield f"unknown classifier {network!r} (timm's are called timm:NAME); {suggest(network, list(MODELS))}"
    if not ours and options.padding == "published":
        yield f"padding published would grow the maps of {network}, whose shapes must stay; leave it out"
    yield from _without_effect(options)
    usual_side, usual_patch = (VIT_SIDE, VIT_PATCH) if ours else (TIMM_SIDE, TIMM_PATCH)
    side, patch = options.img_size or usual_side, options.patch_size or usual_patch
    if (options.img_size or options.patch_size) and side // patch > MAX_GRID:
        yield f"img_size {side} and patch_size {patch} make {side // patch} patches a side, at most {MAX_GRID} fit"
    if ours:
        yield from _family_faults(options, *MODELS[network])
        if MODELS[network][0] in HEAD_WIDTHS:
            yield from _transformer_faults(options, MODELS[network][0], side, patch)


def _without_effect(options: ClassifierOptions) -> Iterator[str]:
    """Yields the given options that do nothing, since the user expects an effect."""
    lacking = without_effect(options.network)
    for name in (field.name for field in fields(options) if getattr(options, field.name) != field.default):
        if name in lacking:
            having = [family for family, layout in FAMILIES.items() if name in layout.options | NOT_FOR_TIMM]
            having += ["timm:NAME"] if name in TIMM_OPTIONS else []
            yield f"option {name} does not apply to {options.network} but to {', '.join(having)}; leave it out"
        if name in SMOOTHING_OPTIONS and not options.smoothing:
            yield f"option {name} does nothing without smoothing; leave it out or switch smoothing on"


def _family_faults(options: ClassifierOptions, name: str, depth: int) -> Iterator[str]:
    network, family, places = options.network, FAMILIES[name], options.smoothing_places
    if options.head is not None and options.head not in family.heads:
        yield f"head {options.head} makes no sense for {network}; choose from {', '.join(family.heads)}"
    if options.smoothing and not family.stages:
        yield f"smoothing does not apply to {network}, which has no stages to smooth; leave it out"
    if places is not None and not (places and set(places) <= set(range(1, family.stages + 1))):
        yield f"smoothing_places of {network} must be one or more of 1..{family.stages}, got {_join(places)}"
    if name == "resnext":
        step = GROUPS // (2 if depth == 50 else 4)  # the inner width is 2 or 4 times the stage's, in 32 groups
        if options.channels % step:
            yield f"{network} needs channels in multiples of {step} for its {GROUPS} groups, got {options.channels}"
    if options.attention is not None:
        most = tuple(count // 2 for count in ALTERNET_BLOCKS[depth])
        given = options.attention
        if len(given) != len(most) or any(not 0 <= a <= m for a, m in zip(given, most, strict=True)):
            yield (
                f"attention of {network} counts the attention blocks of its {len(most)} stages and may be at most "
                f"{_join(most)}, got {_join(given)}"
            )


def _transformer_faults(options: ClassifierOptions, family: str, side: int, patch: int) -> Iterator[str]:
    network, head, window = options.network, HEAD_WIDTHS[family], options.attention_window
    if options.channels % min(head, options.channels):
        yield f"{network} needs channels in multiples of its attention heads' {head}, got {options.channels}"
    if family == "pit" and (patch > side or patch % 2 or (side - patch) % (patch // 2)):
        yield (
            f"patches of {network} overlap by half: patch_size must be even and img_size a multiple of its half, got "
            f"{patch} and {side}"
        )
    if family == "vit" and side % patch:
        yield f"img_size of {network} must be a multiple of patch_size {patch}, got {side}"
    if family == "vit" and window and window < side // patch and window % 2 == 0:
        yield (
            f"attention_window of {network} is centred on each patch, so it must be odd or at least the grid's "
            f"{side // patch}, got {window}"
        )


def _join(values: tuple[int, ...]) -> str:
    return ",".join(map(str, values)) or "none"
