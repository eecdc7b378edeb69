"""The published layouts of the classifiers as tables, and the checks of a classifier's options; no torch here."""

import math
from dataclasses import dataclass, fields, replace
from typing import Any

from steadyseg.classification.options import ClassifierOptions, ClassTrainConfig, HeadName
from steadyseg.core.errors import InputError, suggest
from steadyseg.core.options import MAX_NETWORK_PIXELS, read_options, require_ranges, require_types

TIMM = "timm:"
"""Prefix of every network of the timm library."""

RESIDUAL_BLOCKS: dict[int, tuple[int, ...]] = {
    18: (2, 2, 2, 2),
    34: (3, 4, 6, 3),
    50: (3, 4, 6, 3),
    101: (3, 4, 23, 3),
    152: (3, 8, 36, 3),
}
"""Residual blocks of each stage by depth, bottlenecks from 50 on (He et al. 2016, arXiv 1512.03385, Table 1)."""

ALTERNET_BLOCKS: dict[int, tuple[int, ...]] = {
    18: (2, 2, 2, 2),
    34: (3, 4, 6, 4),
    50: (3, 4, 6, 4),
    101: (3, 4, 23, 4),
    152: (3, 8, 36, 4),
}
"""Convolution and attention blocks; the last stage has one more block, for two pairs (arXiv 2202.06709, Sec. 4)."""

VGG_CONVS: dict[int, tuple[int, ...]] = {
    11: (1, 1, 2, 2, 2),
    13: (2, 2, 2, 2, 2),
    16: (2, 2, 3, 3, 3),
    19: (2, 2, 4, 4, 4),
}
"""Convolutions of each stage by depth (Simonyan and Zisserman 2015, arXiv 1409.1556, Table 1)."""

VIT_BLOCKS = (6, 9, 12)
"""Pairs of attention and MLP; 12 in ViT-Ti, -S and -B (arXiv 2010.11929, Table 1, and 2012.12877, Table 1)."""

SWIN_BLOCKS: dict[int, tuple[int, ...]] = {6: (2, 2, 2), 8: (2, 2, 4), 12: (2, 2, 6, 2), 24: (2, 2, 18, 2)}
"""Pairs of each stage by their number; 12 in Swin-T, 24 in -S and -B (arXiv 2103.14030, Sec. 3.3)."""

PIT_BLOCKS: dict[int, tuple[int, ...]] = {6: (2, 2, 2), 8: (2, 2, 4), 12: (2, 6, 4)}
"""Pairs of each stage by their number; 12 in PiT-Ti, -XS and -S (arXiv 2103.16302, Table 1)."""

HEAD_WIDTHS = {"vit": 64, "pit": 32, "swin": 32}
"""Channels of an attention head, as published."""

VIT_SIDE, VIT_PATCH = 32, 2
"""Pixels of the pictures and of the patches of a vision transformer, as published for CIFAR."""

HEADS: tuple[HeadName, ...] = ("gap", "mlp", "gmaxp", "gmedp", "gap-clip", "gap-mlp")


@dataclass(frozen=True)
class Family:
    """Properties that the networks of one name and different depths share."""

    depths: tuple[int, ...]
    """Depths of the family; empty for a single network."""
    stages: int
    """Stages that can be smoothed; 0 for transformers, whose attention itself smooths maps (arXiv 2202.06709)."""
    smoothed: tuple[int, ...]
    """Stages that are smoothed in the published networks, from 1."""
    heads: tuple[HeadName, ...]
    """Heads of the family; the first is the published head."""
    options: frozenset[str]
    """Options of this family that not all families have."""


FAMILIES: dict[str, Family] = {
    "alexnet": Family((), 3, (1, 2, 3), ("mlp", "gap", *HEADS[2:]), frozenset({"stem"})),
    "vgg": Family((11, 13, 16, 19), 5, (1, 2, 3, 4, 5), ("mlp", "gap", *HEADS[2:]), frozenset()),
    "prevgg": Family((11, 13, 16, 19), 5, (1, 2, 3, 4, 5), ("mlp", "gap", *HEADS[2:], "bn-gap"), frozenset()),
    "resnet": Family((18, 34, 50, 101, 152), 4, (1, 2, 3, 4), HEADS, frozenset({"stem", "stochastic_depth"})),
    "preresnet": Family((18, 34, 50, 101, 152), 4, (1, 2, 3), ("bn-gap",), frozenset({"stem", "stochastic_depth"})),
    "resnext": Family((50, 101), 4, (1, 2, 3, 4), HEADS, frozenset({"stem", "stochastic_depth"})),
    "wideresnet": Family((50, 101), 4, (1, 2, 3, 4), HEADS, frozenset({"stem", "stochastic_depth"})),
    "alternet": Family(
        (18, 34, 50, 101, 152),
        4,
        (1, 2, 3),
        ("bn-gap",),
        frozenset({"stem", "stochastic_depth", "attention", "attention_window"}),
    ),
    "vit": Family(
        VIT_BLOCKS, 0, (), ("cls", "gap"), frozenset({"stochastic_depth", "attention_window", "img_size", "patch_size"})
    ),
    "pit": Family(tuple(PIT_BLOCKS), 0, (), ("cls",), frozenset({"stochastic_depth", "img_size", "patch_size"})),
    "swin": Family(
        tuple(SWIN_BLOCKS), 0, (), ("gap",), frozenset({"stochastic_depth", "attention_window", "patch_size"})
    ),
}
"""All stages are smoothed, except before the BN-ReLU-GAP head of a pre-activation network (arXiv 2105.12639)."""

TIMM_OPTIONS = frozenset({"stochastic_depth", "img_size", "patch_size", "pretrained"})
"""Options of timm's networks that not all of our families have."""
NOT_FOR_TIMM = frozenset({"channels", "head", "smoothing_places", "prob_scale"})
"""Options of all our families that timm's networks lack."""

MODELS: dict[str, tuple[str, int]] = {
    f"{family}{depth or ''}": (family, depth) for family, layout in FAMILIES.items() for depth in layout.depths or (0,)
}
"""Family and depth of our networks by name; a single network has depth 0. `timm:NAME` names a network of timm."""


def smoothed_stages(options: ClassifierOptions) -> tuple[int, ...]:
    """Returns the numbers of the smoothed stages, from 1."""
    if not options.smoothing:
        return ()
    family, _ = MODELS[options.network]
    return FAMILIES[family].smoothed if options.smoothing_places is None else options.smoothing_places


def attention_layout(options: ClassifierOptions) -> tuple[tuple[int, ...], int]:
    """Returns the attention blocks of each stage of an AlterNet, and the side of their windows in points of the map.

    Published for ImageNet: (0, 1, 3, 2), window 7; for CIFAR-100: (0, 1, 1, 2), window 4 (arXiv 2202.06709, Fig. 11 and
    App. E: maps of 32, 16, 8 and 4 points, and two or more attention blocks in the third stage hurt). Depth 18 has two
    blocks a stage, so at most one attention block.
    """
    _, depth = MODELS[options.network]
    if depth == 18:
        published: tuple[int, ...] = (0, 1, 1, 1)
    else:
        published = (0, 1, 3, 2) if options.stem else (0, 1, 1, 2)
    window = (7 if options.stem else 4) if options.attention_window is None else options.attention_window
    return published if options.attention is None else options.attention, window


def heads_of(options: ClassifierOptions) -> tuple[int, ...]:
    """Returns the attention heads of each stage of a transformer, as many as published for its width."""
    family, depth = MODELS[options.network]
    first = max(1, options.channels // HEAD_WIDTHS[family])
    stages = {"vit": (depth,), "pit": PIT_BLOCKS.get(depth, ()), "swin": SWIN_BLOCKS.get(depth, ())}[family]
    return tuple(first * 2**i for i in range(len(stages)))


def drop_unsuited(config: ClassTrainConfig, preset: ClassTrainConfig) -> ClassTrainConfig:
    """Removes the options of the preset that the chosen network lacks (a VGG has no stem). Options that the user gave
    stay and are refused later, since the user expects them to have an effect.
    """
    options, default = config.classifier, ClassifierOptions()
    if options.network in MODELS:
        lacking = {"stem", "stochastic_depth"} - FAMILIES[MODELS[options.network][0]].options
    elif options.network.startswith(TIMM):
        lacking = {"stem", *NOT_FOR_TIMM}
    else:
        return config
    unfit = {
        field.name: getattr(default, field.name)
        for field in fields(options)
        if field.name in lacking and getattr(options, field.name) == getattr(preset.classifier, field.name)
    }
    return replace(config, classifier=replace(options, **unfit))


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
    """Raises InputError for the first option that makes no sense; timm itself checks names after `timm:`."""
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
