"""Names of choices, limits of sizes, and checks of values that options and records share. No torch: the command line
reads options for its help."""

import types
from dataclasses import fields
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from steadyseg.core.errors import InputError, shorten, suggest

T = TypeVar("T")

NO_FLAG = "no flag"
Rare = Annotated[T, NO_FLAG]
"""A rare setting: it has no flag of its own, and `--config NAME=VALUE` sets it (app/settings.py)."""

ProbName = Literal["tanh", "relu6", "constant", "sigmoid", "softmax", "bn-tanh", "signed-tanh", "none"]
"""The Prob function of spatial smoothing."""
PaddingName = Literal["published", "same"]
"""published: the k = 2 blur grows the map by one before the pooling; same: it keeps the size."""

Every = int | Literal["auto", "live"]
"""The frames that the network runs on (runtime/every.py)."""

MAX_NETWORK_PIXELS = 2**21
"""Largest height times width at which a record's network works: 1024 x 2048, a whole frame of Cityscapes."""

Options = TypeVar("Options")


def is_rare(hint: Any) -> bool:
    """Returns True for a setting without a flag."""
    return NO_FLAG in getattr(hint, "__metadata__", ())


def spelled(options: object, name: str) -> str:
    """The spelling of a field on the command line: `--name`, or `--config name` if it has no flag."""
    hint = get_type_hints(type(options), include_extras=True)[name]
    return f"--config {name}" if is_rare(hint) else f"--{name.replace('_', '-')}"


def require_ranges(config: object, ranges: dict[str, tuple[float, float]]) -> None:
    """Raises InputError for the first field outside its closed range or NaN; every part of a tuple must lie in the
    range.

    Checked before anything is opened.
    """
    for name, (low, high) in ranges.items():
        value = getattr(config, name)
        if not all(low <= part <= high for part in (value if isinstance(value, tuple) else (value,))):
            raise InputError(f"{spelled(config, name)} must lie in {low:g}..{high:g}, got {value}")


def is_number(value: object, low: float, high: float) -> bool:
    """True for an int or float in the closed range; False for booleans and NaN."""
    return isinstance(value, int | float) and not isinstance(value, bool) and low <= value <= high


def is_whole(value: object, low: int, high: int) -> bool:
    """True for an int in the closed range; False for booleans."""
    return type(value) is int and low <= value <= high


def read_options(options_class: type[Options], record: dict[str, Any], what: str) -> Options:
    """Reads options from a record, where tuples are lists; InputError for unknown names and wrong types."""
    known = sorted(get_type_hints(options_class))
    for name in record:
        if name not in known:
            raise InputError(f"unknown option {shorten(name)} of {what}; {suggest(name, known)}")
    options = options_class(**{name: tuple(v) if isinstance(v, list) else v for name, v in record.items()})
    require_types(options, f"option {{}} of {what}")
    return options


def require_types(values: Any, what: str) -> None:
    """Raises InputError for a field of a dataclass whose value has the wrong type, which a record from elsewhere may
    hold.

    `what` names the field in the message, as in "option {} of unet".
    """
    hints = get_type_hints(type(values))
    for name in (field.name for field in fields(values)):
        if not has_type(value := getattr(values, name), hints[name]):
            raise InputError(f"{what.format(name)} must be {in_words(hints[name])}, got {shorten(value)}")


def has_type(value: Any, hint: Any) -> bool:
    """True if a value from a record has the type; an int counts as a float, a boolean does not count as a number."""
    origin, arguments = get_origin(hint), get_args(hint)
    if hint is Any:
        return True
    if origin in (Union, types.UnionType):
        return any(has_type(value, argument) for argument in arguments)
    if origin is Literal:
        return any(type(value) is type(argument) and value == argument for argument in arguments)
    if origin is tuple:
        return (
            isinstance(value, tuple)
            and (arguments[-1] is Ellipsis or len(value) == len(arguments))
            and all(has_type(item, arguments[0]) for item in value)
        )
    if origin is dict:
        return isinstance(value, dict) and all(has_type(item, arguments[1]) for item in value.values())
    if isinstance(value, bool):
        return hint is bool
    return isinstance(value, (int, float) if hint is float else hint)


def in_words(hint: Any) -> str:
    """Returns the type in words of a message: a whole number, true or false, ..."""
    origin, arguments = get_origin(hint), get_args(hint)
    if origin in (Union, types.UnionType):
        return " or ".join(map(in_words, arguments))
    if origin is Literal:
        return ", ".join(map(str, arguments))
    if origin is tuple:
        return f"{in_words(arguments[0]).removeprefix('a ')}s"
    names = {
        int: "a whole number",
        float: "a number",
        bool: "true or false",
        str: "a text",
        dict: "an object",
        Path: "a path",
    }
    return names.get(origin or hint, "none")
