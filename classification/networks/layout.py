"""The published layouts of the classifiers as tables; no torch here."""

from dataclasses import dataclass, replace

from steadyseg.classification.options import ClassifierOptions, ClassTrainConfig, HeadName

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

ALTERNET_BLOCKS = {depth: (*blocks[:3], blocks[3] + (depth > 18)) for depth, blocks in RESIDUAL_BLOCKS.items()}
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


STEM = frozenset({"stem"})
DEPTH = frozenset({"stochastic_depth"})
TOKENS = DEPTH | {"patch_size"}
CONV_HEADS: tuple[HeadName, ...] = ("mlp", "gap", *HEADS[2:])
FAMILIES: dict[str, Family] = {
    "alexnet": Family((), 3, (1, 2, 3), CONV_HEADS, STEM),
    "vgg": Family(tuple(VGG_CONVS), 5, (1, 2, 3, 4, 5), CONV_HEADS, frozenset()),
    "prevgg": Family(tuple(VGG_CONVS), 5, (1, 2, 3, 4, 5), (*CONV_HEADS, "bn-gap"), frozenset()),
    "resnet": Family(tuple(RESIDUAL_BLOCKS), 4, (1, 2, 3, 4), HEADS, STEM | DEPTH),
    "preresnet": Family(tuple(RESIDUAL_BLOCKS), 4, (1, 2, 3), ("bn-gap",), STEM | DEPTH),
    "resnext": Family((50, 101), 4, (1, 2, 3, 4), HEADS, STEM | DEPTH),
    "wideresnet": Family((50, 101), 4, (1, 2, 3, 4), HEADS, STEM | DEPTH),
    "alternet": Family(
        tuple(ALTERNET_BLOCKS), 4, (1, 2, 3), ("bn-gap",), STEM | DEPTH | {"attention", "attention_window"}
    ),
    "vit": Family(VIT_BLOCKS, 0, (), ("cls", "gap"), TOKENS | {"attention_window", "img_size"}),
    "pit": Family(tuple(PIT_BLOCKS), 0, (), ("cls",), TOKENS | {"img_size"}),
    "swin": Family(tuple(SWIN_BLOCKS), 0, (), ("gap",), TOKENS | {"attention_window"}),
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


def without_effect(network: str) -> frozenset[str]:
    """Returns the names of the options that do nothing for this network."""
    sometimes = TIMM_OPTIONS.union(*(family.options for family in FAMILIES.values()))
    if network in MODELS:
        return sometimes - FAMILIES[MODELS[network][0]].options
    return sometimes - TIMM_OPTIONS | NOT_FOR_TIMM


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


def drop_unsuited(config: ClassTrainConfig, preset: ClassTrainConfig) -> ClassTrainConfig:
    """Removes the options of the preset that the chosen network lacks (a VGG has no stem). Options that the user gave
    stay and are refused later, since the user expects them to have an effect.
    """
    options, default = config.classifier, ClassifierOptions()
    if options.network not in MODELS and not options.network.startswith(TIMM):
        return config
    unfit = {
        name: getattr(default, name)
        for name in without_effect(options.network)
        if getattr(options, name) == getattr(preset.classifier, name)
    }
    return replace(config, classifier=replace(options, **unfit))
