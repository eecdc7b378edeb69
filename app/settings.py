"""Settings of a command beyond its flags: `--config` reads them from files and NAME=VALUE, or lists them."""

import argparse
import contextlib
import dataclasses
import json
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple, get_type_hints

from steadyseg.app.parsing import default_of, help_texts, nested_options
from steadyseg.core.errors import InputError, shorten
from steadyseg.core.options import has_type, in_words, is_rare
from steadyseg.core.system.files import read_small
from steadyseg.core.system.json_text import leaves, parse_json

LIST = "list"
"""The word after `--config` that prints all settings."""


class Setting(NamedTuple):
    """A field that `--config` may set."""

    name: str
    group: str
    """Its table in a TOML file; empty for settings outside of tables."""
    hint: Any
    default: Any
    help: str


def early_words(words: list[str]) -> argparse.Namespace:
    """The arguments that determine the defaults of flags: --config and, of trainings, --preset, --resume and --run."""
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    parser.add_argument("--config", nargs="*", action="extend", default=[])
    for flag in ("--preset", "--run"):
        parser.add_argument(flag, nargs="?")
    parser.add_argument("--resume", action="store_true")
    return parser.parse_known_args(words)[0]


def list_settings(options: type, default: Any = None, group: str = "", all_of_them: bool = False) -> Iterator[Setting]:
    """Yields the settings of a command: its rare fields and, of a training, the whole configuration. Names are
    unique."""
    hints, texts = get_type_hints(options, include_extras=True), help_texts(options)
    plain, nested = get_type_hints(options), []
    for field in dataclasses.fields(options):
        value, hint = getattr(default, field.name, default_of(field)), hints[field.name]
        if inner := nested_options(hint):
            nested.append((inner, value, field.name))
        elif all_of_them or is_rare(hint):
            yield Setting(field.name, group, plain[field.name], value, texts.get(field.name, ""))
    for inner, value, name in nested:
        table = "" if name in ("config", "options") else name
        yield from list_settings(inner, value, table, all_of_them or name == "config")


def read_settings(words: Iterable[str | Path], options: type, skip_unknown: bool = False) -> dict[str, Any]:
    """Values by name from the words of `--config`, or from a file; later ones override earlier ones. InputError for
    unknown names and values of the wrong type."""
    known = {setting.name: setting for setting in list_settings(options)}
    found: dict[str, Any] = {}
    for word in words:
        name, is_pair, text = str(word).partition("=")
        given = _pair(known, name, text) if is_pair and isinstance(word, str) else _read_file(Path(word))
        for key, value in given.items():
            if key in known:
                found[key] = checked(known[key], value, str(word))
            elif not skip_unknown:
                raise InputError(f"--config {word}: no setting is named {key}; `--config {LIST}` prints all")
    return found


def settings_of_run(options: type, run: Path) -> dict[str, Any]:
    """The first settings of a run folder's training. Empty if the folder is absent or unreadable, since the training
    reports this itself."""
    with contextlib.suppress(InputError):
        return read_settings([run / "config.json"], options, skip_unknown=True)
    return {}


def checked(setting: Setting, value: Any, source: str) -> Any:
    """Returns the value in the setting's type; InputError if it does not fit."""
    if isinstance(value, list):
        value = tuple(value)
    elif isinstance(value, str) and has_type(Path(), setting.hint):
        value = Path(value)
    if not has_type(value, setting.hint):
        raise InputError(f"--config {source}: {setting.name} must be {in_words(setting.hint)}, got {shorten(value)}")
    return value


def print_settings(options: type, default: Any, settings: Mapping[str, Any]) -> None:
    """Prints all settings with their values as a TOML file that `--config` reads."""
    group = ""
    for setting in list_settings(options, default):
        if setting.group != group:
            group = setting.group
            print(f"\n[{group}]")
        value = settings.get(setting.name, setting.default)
        text = json.dumps(list(value) if isinstance(value, tuple) else value, default=str, ensure_ascii=False)
        line = f"# {setting.name} is left out" if value is None else f"{setting.name} = {text}"  # TOML lacks None
        print(f"# {setting.help}\n{line}")


def _pair(known: Mapping[str, Setting], name: str, text: str) -> dict[str, Any]:
    """Parses NAME=VALUE; commas separate the items of a list, and None means no value."""
    hint = known[name].hint if name in known else str
    if text == "None" and has_type(None, hint):
        return {name: None}
    if has_type((), hint):
        return {name: [_scalar(part) for part in text.split(",") if part]}
    return {name: text if has_type(text, hint) else _scalar(text)}


def _scalar(text: str) -> Any:
    for read in (int, float, {"true": True, "false": False}.__getitem__):
        with contextlib.suppress(ValueError, KeyError):
            return read(text)
    return text


def _read_file(path: Path) -> dict[str, Any]:
    """Returns the settings of a file by name; its tables only group them, since names are unique."""
    if path.suffix not in (".toml", ".json"):
        raise InputError(f"--config {path}: expected a .toml or .json file, NAME=VALUE, or {LIST}")
    try:
        text = read_small(path).decode("utf-8-sig").replace("\r\n", "\n")
        record = tomllib.loads(text) if path.suffix == ".toml" else parse_json(text)
        values = [*leaves(record)] if isinstance(record, dict) else None
    except OSError as error:
        raise InputError(f"--config {path}: cannot be read ({error.strerror})") from error
    except (ValueError, RecursionError) as error:
        raise InputError(f"--config {path}: no {path.suffix[1:].upper()} file ({error})") from error
    if values is None:
        raise InputError(f"--config {path}: expected names with values")
    # A run's config.json holds the number of processes, but torchrun decides it.
    return {name.rpartition(".")[2]: value for name, value in values if name.partition(".")[0] != "processes"}
