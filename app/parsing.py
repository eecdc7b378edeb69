"""Parses the flags of a command by tyro: frozen dataclasses whose field docstrings are the help."""

import contextlib
import dataclasses
import io
import re
from collections.abc import Callable, Mapping
from functools import cache, partial
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar, get_args, get_origin, get_type_hints

import docstring_parser
import tyro
from tyro.conf import FlagCreatePairsOff, OmitArgPrefixes, arg
from tyro.constructors import (
    MISSING,
    ConstructorRegistry,
    PrimitiveConstructorSpec,
    PrimitiveTypeInfo,
    StructConstructorSpec,
    StructFieldSpec,
    StructTypeInfo,
)

from steadyseg.core.errors import InputError
from steadyseg.core.options import is_rare

T = TypeVar("T")

HEADINGS = (
    {"config": "", "options": ""}
    | dict.fromkeys(("unet", "segnet", "smp", "classifier"), "network")
    | dict.fromkeys(("augment", "pictures", "loop"), "training")
)
"""By field, the heading of nested options in `--help` if it differs from the field's name; empty: among the command's
own options."""
RENAMED = {"--executor": "--backend"}
"""Flags of version 0.2 that have another name now."""
_without_default = arg(help_behavior_hint="")
"""For flags whose help states the default."""


def parse(
    flags: Callable[..., T],
    arguments: list[str],
    program: str,
    summary: str,
    default: T | None = None,
    settings: Mapping[str, Any] = {},
) -> T:
    """Parses the arguments into the dataclass `flags`. A wrong flag raises InputError with one line, not tyro's box.

    Args:
        default: Values of the flags that are not given, by default the dataclass's values.
        settings: By field name, values with priority over `default`.
    """
    complaint, registry = io.StringIO(), ConstructorRegistry()
    registry.struct_rule(partial(_options, settings))
    registry.primitive_rule(_optional)
    # Presets have different defaults, so both words of a switch are needed.
    given: dict[str, Any] = {"config": (FlagCreatePairsOff,)} if default is None else {"default": default}
    try:
        with contextlib.redirect_stderr(complaint):
            return tyro.cli(flags, args=arguments, prog=program, description=summary, registry=registry, **given)
    except SystemExit as stop:
        if not stop.code:
            raise
        meant = likely_flags(complaint.getvalue(), arguments)
        hint = f"did you mean {' or '.join(meant)}? See" if meant else "see"
        raise InputError(f"{first_paragraph(complaint.getvalue())}; {hint} {program} --help") from None


def first_paragraph(box: str) -> str:
    """The text of an error box that tyro drew, up to the box's first horizontal line."""
    lines = [line.strip("│ ") for line in box.splitlines()[1:]]
    lines = lines[1:] if lines and is_rule(lines[0]) else lines
    rule = next((number for number, line in enumerate(lines) if is_rule(line)), len(lines))
    return " ".join(lines[:rule]).strip().rstrip(".")


def likely_flags(box: str, arguments: list[str]) -> list[str]:
    """The flags that tyro's error box suggests, each on a line of its own, and new names of renamed flags."""
    suggested = re.findall(r"^\W {5}(--?\w[\w-]*)", box, re.MULTILINE)
    return suggested + [new for old, new in RENAMED.items() if old in arguments and "Unrecognized" in box]


def is_rule(line: str) -> bool:
    """True for a horizontal line of a box; on a terminal without line characters tyro draws it with hyphens."""
    return bool(line) and not line.strip("─╰╯-")


@cache
def help_texts(options: type) -> dict[str, str]:
    """Returns the field docstrings as paragraphs, since tyro would keep the line breaks of the source."""
    classes = reversed(options.__mro__[:-1])
    parameters = [one for part in classes for one in docstring_parser.parse_from_object(part).params]
    return {one.arg_name: " ".join(one.description.split()) for one in parameters if one.description}


def nested_options(hint: Any) -> type | None:
    """Returns the dataclass of a field with nested options, else None."""
    kind = get_args(hint)[0] if get_origin(hint) is Annotated else hint
    return kind if isinstance(kind, type) and dataclasses.is_dataclass(kind) else None


def _options(settings: Mapping[str, Any], info: StructTypeInfo) -> StructConstructorSpec | None:
    """Spec of a dataclass of options: a flag for each field that is not rare, with its docstring as help."""
    if not dataclasses.is_dataclass(info.type):
        return None
    hints, texts = get_type_hints(info.type, include_extras=True), help_texts(info.type)
    shown, hidden = [], {}
    for field in dataclasses.fields(info.type):
        hint: Any = hints[field.name]
        text = texts.get(field.name)
        value = getattr(info.default, field.name, default_of(field))
        if nested_options(hint):
            hint = Annotated[hint, OmitArgPrefixes, arg(name=HEADINGS.get(field.name, field.name))]
            text = "" if field.name in HEADINGS else text
        else:
            value = settings.get(field.name, value)
        if is_rare(hint):
            hidden[field.name] = value
        else:
            plain_switch = value is False and FlagCreatePairsOff in info.markers
            if value is None or value == () or plain_switch:
                hint = Annotated[hint, _without_default]
            shown.append(StructFieldSpec(field.name, hint, value, text))
    return StructConstructorSpec(lambda **given: info.type(**hidden, **given), tuple(shown))


def default_of(field: dataclasses.Field[Any]) -> Any:
    """Returns the default of a field; MISSING if the field must be given."""
    if field.default_factory is not dataclasses.MISSING:
        return field.default_factory()
    return MISSING if field.default is dataclasses.MISSING else field.default


def _optional(info: PrimitiveTypeInfo) -> PrimitiveConstructorSpec[Any] | None:
    """Spec of a value that may be None. The help of a number, text or path shows INT and not {None}|INT. In a switch or
    choice, None is written auto: auto, on, off, or auto, dnn, bnn, ..."""
    kinds = [option for option in get_args(info.type) if option is not type(None)]
    if len(kinds) != 1 or len(get_args(info.type)) != 2:
        return None
    (kind,) = kinds
    if kind in (int, float, str, Path):
        return PrimitiveConstructorSpec(
            nargs=1,
            metavar=kind.__name__.upper(),
            instance_from_str=lambda given: None if given == ["None"] else kind(given[0]),  # None overrides a preset
            is_instance=lambda value: value is None or isinstance(value, kind),
            str_from_instance=lambda value: [str(value)],
        )
    if kind is not bool and get_origin(kind) is not Literal:
        return None
    words = {"auto": None} | ({"on": True, "off": False} if kind is bool else {word: word for word in get_args(kind)})
    spellings = {meant: word for word, meant in words.items()}
    return PrimitiveConstructorSpec(
        nargs=1,
        metavar="{" + ",".join(words) + "}",
        instance_from_str=lambda given: words[given[0]],
        is_instance=lambda value: value in words.values(),
        str_from_instance=lambda value: [spellings[value]],
        choices=tuple(words),
    )
