"""Parses the flags of a command by tyro: frozen dataclasses whose field docstrings are the help."""

import contextlib
import dataclasses
import io
from collections.abc import Callable
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal, TypeVar, get_args, get_origin

import docstring_parser
import tyro
from tyro.constructors import ConstructorRegistry, PrimitiveConstructorSpec, PrimitiveTypeInfo

from core.errors import InputError

T = TypeVar("T")
REGISTRY = ConstructorRegistry()


def parse(flags: Callable[..., T], arguments: list[str], program: str, summary: str, default: T | None = None) -> T:
    """Parses the arguments into the dataclass `flags`. A wrong flag raises InputError with one line, not tyro's box."""
    complaint = io.StringIO()
    if dataclasses.is_dataclass(flags):
        join_help_lines(flags)
    given: dict[str, Any] = {} if default is None else {"default": default}
    try:
        with contextlib.redirect_stderr(complaint):
            return tyro.cli(flags, args=arguments, prog=program, description=summary, registry=REGISTRY, **given)
    except SystemExit as stop:
        if not stop.code:
            raise
        raise InputError(f"{first_paragraph(complaint.getvalue())}; see {program} --help") from None


def first_paragraph(box: str) -> str:
    """The text of an error box that tyro drew, up to the box's first horizontal line."""
    lines = [line.strip("│ ") for line in box.splitlines()[1:]]
    lines = lines[1:] if lines and is_rule(lines[0]) else lines
    rule = next((number for number, line in enumerate(lines) if is_rule(line)), len(lines))
    return " ".join(lines[:rule]).strip().rstrip(".")


def is_rule(line: str) -> bool:
    """True for a horizontal line of a box; on a terminal without line characters tyro draws it with hyphens."""
    return bool(line) and not line.strip("─╰╯-")


def join_help_lines(flags: Any) -> None:
    """Joins the lines of the field docstrings, since tyro would keep the line breaks of the source."""
    texts = {one.arg_name: one.description or "" for one in docstring_parser.parse_from_object(flags).params}
    for field in dataclasses.fields(flags):
        field.metadata = MappingProxyType({"help": " ".join(texts.get(field.name, "").split()) or None})
        kind = get_args(field.type)[0] if get_origin(field.type) is not None and get_args(field.type) else field.type
        if dataclasses.is_dataclass(kind):
            join_help_lines(kind)


@REGISTRY.primitive_rule
def _optional(info: PrimitiveTypeInfo) -> PrimitiveConstructorSpec[Any] | None:
    """Spec of an optional number, text or path, whose help shows INT and not {None}|INT."""
    kinds = [option for option in get_args(info.type) if option is not type(None)]
    if len(kinds) != 1 or kinds[0] not in (int, float, str, Path) or type(None) not in get_args(info.type):
        return None
    (kind,) = kinds
    return PrimitiveConstructorSpec(
        nargs=1,
        metavar=kind.__name__.upper(),
        instance_from_str=lambda given: None if given == ["None"] else kind(given[0]),  # None undoes a preset's
        is_instance=lambda value: value is None or isinstance(value, kind),
        str_from_instance=lambda value: [str(value)],
    )


@REGISTRY.primitive_rule
def _auto(info: PrimitiveTypeInfo) -> PrimitiveConstructorSpec[Any] | None:
    """Spec of a switch or choice that may be None, which is written auto: auto, on, off; auto, dnn, bnn, ..."""
    options = get_args(info.type)
    if type(None) not in options or len(options) != 2:
        return None
    (kind,) = (option for option in options if option is not type(None))
    words: dict[str, Any] = {"auto": None}
    if kind is bool:
        words |= {"on": True, "off": False}
    elif get_origin(kind) is Literal:
        words |= {word: word for word in get_args(kind)}
    else:
        return None
    return PrimitiveConstructorSpec(
        nargs=1,
        metavar="{" + ",".join(words) + "}",
        instance_from_str=lambda given: words[given[0]],
        is_instance=lambda value: value in words.values(),
        str_from_instance=lambda value: [
            next(word for word, meant in words.items() if meant is value or meant == value)
        ],
        choices=tuple(words),
    )
