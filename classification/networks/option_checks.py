"""Checks of a classifier's options, without torch, and their reader from a checkpoint's record."""

import difflib
import math
import types
from dataclasses import fields
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from classification.networks.layout import (
    ALTERNET_BLOCKS,
    FAMILIES,
    HEAD_WIDTHS,
    MODEL_NAMES,
    MODELS,
    NOT_FOR_TIMM,
    TIMM,
    TIMM_OPTIONS,
    VIT_PATCH,
    VIT_SIDE,
    Family,
)
from classification.options import ClassifierOptions
from core.errors import InputError
from core.options import require_ranges

RANGES: dict[str, tuple[float, float]] = {
    "channels": (1, 1024),
    "dropout": (0, 255 / 256),
    "stochastic_depth": (0, 1),
}
OPTIONAL_RANGES: dict[str, tuple[float, float]] = {
    "prob_scale": (1e-3, math.inf),
    "attention_window": (1, math.inf),
    "img_size": (1, math.inf),
    "patch_size": (1, math.inf),
}
SMOOTHING_OPTIONS = ("smoothing_places", "prob", "prob_scale", "blur", "padding")
GROUPS = 32
"""Groups of ResNeXt's 3x3 convolutions."""
DEFAULTS = ClassifierOptions()


def options_of(record: dict[str, Any]) -> ClassifierOptions:
    """Reads options from a checkpoint's record, where tuples are lists; InputError for an unknown name.

    `pretrained` is off, because the weights come with the record.
    """
    known = [field.name for field in fields(ClassifierOptions)]
    for name in record:
        if name not in known:
            raise InputError(f"unknown option {name!r} of a classifier; {_suggestion(str(name), known)}")
    values: dict[str, Any] = {name: tuple(v) if isinstance(v, list) else v for name, v in record.items()}
    return ClassifierOptions(**values | {"pretrained": False})


def check_classifier(options: ClassifierOptions) -> None:
    """Raises InputError for the first option that makes no sense; timm itself checks names after `timm:`."""
    _require_types(options)
    require_ranges(options, RANGES)
    require_ranges(options, {name: r for name, r in OPTIONAL_RANGES.items() if getattr(options, name) is not None})
    if options.network not in MODELS and not options.network.startswith(TIMM):
        raise InputError(
            f"unknown classifier {options.network!r} (timm's are called timm:NAME); "
            f"{_suggestion(options.network, MODEL_NAMES)}"
        )
    _require_applicable(options)
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


def _require_types(options: ClassifierOptions) -> None:
    """Raises InputError for a value of a wrong type: a record may hold any, and a dataclass takes them all."""
    for name, hint in get_type_hints(ClassifierOptions).items():
        value = getattr(options, name)
        if not _is(value, hint):
            raise InputError(f"option {name} of a classifier must be {_in_words(hint)}, got {value!r}")


def _is(value: Any, hint: Any) -> bool:
    origin, arguments = get_origin(hint), get_args(hint)
    if origin in (Union, types.UnionType):
        return any(_is(value, argument) for argument in arguments)
    if origin is Literal:
        return isinstance(value, str) and value in arguments
    if origin is tuple:
        return isinstance(value, tuple) and all(_is(item, arguments[0]) for item in value)
    if isinstance(value, bool):
        return hint is bool
    return isinstance(value, (int, float) if hint is float else hint)


def _in_words(hint: Any) -> str:
    if get_origin(hint) in (Union, types.UnionType):
        return " or ".join(map(_in_words, get_args(hint)))
    if get_origin(hint) is Literal:
        return ", ".join(get_args(hint))
    if get_origin(hint) is tuple:
        return "whole numbers"
    return {int: "a whole number", float: "a number", bool: "true or false", str: "a text"}.get(hint, "none")


def _require_applicable(options: ClassifierOptions) -> None:
    """Refuses an option that would have no effect: the user expects one."""
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


def _suggestion(name: str, known: tuple[str, ...] | list[str]) -> str:
    near = difflib.get_close_matches(name.lower(), known, n=3)
    return f"did you mean {' or '.join(near)}?" if near else f"known are {', '.join(known)}"
