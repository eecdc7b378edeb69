"""Classifiers by name, ours and timm's, and the checks of their options."""

import math
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
    Family,
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
    if isinstance(options, dict):
        options = options_of(options)
    check_classifier(options)
    if num_classes < 2:
        raise InputError(f"a classifier needs two or more classes, got {num_classes}")
    if options.network not in MODELS:
        return TimmNetwork(options, num_classes)
    family, _ = MODELS[options.network]
    network = BUILDERS[family](options, num_classes)
    if family not in OWN_INITIALISATION:
        initialise(network)
    return network


def initialise(network: nn.Module) -> None:
    """Draws normal weights of variance 2 / fan-out for every convolution (He et al. 2015, arXiv 1502.01852, Eq. 14)."""
    for module in network.modules():
        if isinstance(module, nn.Conv2d):
            nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")


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
DEFAULTS = ClassifierOptions()


def options_of(record: dict[str, Any]) -> ClassifierOptions:
    """Reads options from a checkpoint's record; `pretrained` is off, because the weights come with the record."""
    return replace(read_options(ClassifierOptions, record, "a classifier"), pretrained=False)


def check_classifier(options: ClassifierOptions) -> None:
    """Raises InputError for the first invalid option. Timm checks the name after `timm:` itself."""
    require_types(options, "option {} of a classifier")
    require_ranges(options, {name: r for name, r in RANGES.items() if getattr(options, name) is not None})
    if options.network not in MODELS and not options.network.startswith(TIMM):
        raise InputError(
            f"unknown classifier {options.network!r} (timm's are called timm:NAME); "
            f"{suggest(options.network, list(MODELS))}"
        )
    _require_applicable(options)
    _check_grid(options)
    if not options.smoothing:
        _require_smoothing(options)
    if options.network in MODELS:
        family, depth = MODELS[options.network]
        _check_family(options, FAMILIES[family])
        if family == "resnext":
            _check_groups(options, depth)
        if family in HEAD_WIDTHS:
            _check_transformer(options, family)
        if options.attention is not None:
            _check_attention(options.attention, ALTERNET_BLOCKS[depth], options.network)


def _require_applicable(options: ClassifierOptions) -> None:
    """Refuses an option without effect, since the user expects an effect."""
    sometimes = TIMM_OPTIONS.union(*(family.options for family in FAMILIES.values()))
    if options.network in MODELS:
        lacking = sometimes - FAMILIES[MODELS[options.network][0]].options
    else:
        lacking = sometimes - TIMM_OPTIONS | NOT_FOR_TIMM
        if options.padding == "published":
            raise InputError(
                f"padding published would grow the maps of {options.network}, whose shapes must stay; leave it out"
            )
    for field in fields(options):
        if field.name in lacking and getattr(options, field.name) != field.default:
            having = [name for name, family in FAMILIES.items() if field.name in family.options | NOT_FOR_TIMM]
            having += ["timm:NAME"] if field.name in TIMM_OPTIONS else []
            raise InputError(
                f"option {field.name} does not apply to {options.network} but to {', '.join(having)}; leave it out"
            )


def _require_smoothing(options: ClassifierOptions) -> None:
    for name in SMOOTHING_OPTIONS:
        if getattr(options, name) != getattr(DEFAULTS, name):
            raise InputError(f"option {name} does nothing without smoothing; leave it out or switch smoothing on")


def _check_family(options: ClassifierOptions, family: Family) -> None:
    if options.head is not None and options.head not in family.heads:
        raise InputError(
            f"head {options.head} makes no sense for {options.network}; choose from {', '.join(family.heads)}"
        )
    if options.smoothing and not family.stages:
        raise InputError(f"smoothing does not apply to {options.network}, which has no stages to smooth; leave it out")
    places = options.smoothing_places
    if places is not None and not (places and set(places) <= set(range(1, family.stages + 1))):
        raise InputError(
            f"smoothing_places of {options.network} must be one or more of 1..{family.stages}, got {_join(places)}"
        )


def _check_groups(options: ClassifierOptions, depth: int) -> None:
    step = GROUPS // (2 if depth == 50 else 4)  # the inner width is 2 or 4 times the stage's, in 32 groups
    if options.channels % step:
        raise InputError(
            f"{options.network} needs channels in multiples of {step} for its {GROUPS} groups, got {options.channels}"
        )


def _check_grid(options: ClassifierOptions) -> None:
    """Refuses a transformer with too many patches; timm's defaults are pictures of 224 and patches of 16."""
    usual_side, usual_patch = (VIT_SIDE, VIT_PATCH) if options.network in MODELS else (TIMM_SIDE, TIMM_PATCH)
    side, patch = options.img_size or usual_side, options.patch_size or usual_patch
    if (options.img_size or options.patch_size) and side // patch > MAX_GRID:
        raise InputError(
            f"img_size {side} and patch_size {patch} make {side // patch} patches a side, at most {MAX_GRID} are taken"
        )


def _check_transformer(options: ClassifierOptions, family: str) -> None:
    head = HEAD_WIDTHS[family]
    if options.channels % min(head, options.channels):
        raise InputError(
            f"{options.network} needs channels in multiples of its attention heads' {head}, got {options.channels}"
        )
    side, patch = options.img_size or VIT_SIDE, options.patch_size or VIT_PATCH
    if family == "pit" and (patch > side or patch % 2 or (side - patch) % (patch // 2)):
        raise InputError(
            f"patches of {options.network} overlap by half: patch_size must be even and img_size a multiple of its "
            f"half, got {patch} and {side}"
        )
    if family != "vit":
        return
    if side % patch:
        raise InputError(f"img_size of {options.network} must be a multiple of patch_size {patch}, got {side}")
    if options.attention_window and options.attention_window < side // patch and options.attention_window % 2 == 0:
        raise InputError(
            f"attention_window of {options.network} is centred on each patch, so it must be odd or at least the grid's "
            f"{side // patch}, got {options.attention_window}"
        )


def _check_attention(attention: tuple[int, ...], blocks: tuple[int, ...], model: str) -> None:
    most = [count // 2 for count in blocks]
    if len(attention) != len(blocks) or any(not 0 <= a <= m for a, m in zip(attention, most, strict=True)):
        raise InputError(
            f"attention of {model} counts the attention blocks of its {len(blocks)} stages and may be at most "
            f"{_join(most)}, got {_join(attention)}"
        )


def _join(values: tuple[int, ...] | list[int]) -> str:
    return "none" if not values else ",".join(map(str, values))
