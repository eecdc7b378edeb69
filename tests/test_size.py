"""Ceilings of the code: a feature that raises one says in the same commit what goes."""

import dataclasses
from collections.abc import Iterator
from pathlib import Path
from typing import get_type_hints

import pytest

from steadyseg.__main__ import STEADYSEG
from steadyseg.app.commands import Command, load
from steadyseg.app.parsing import nested_options
from steadyseg.app.settings import list_settings
from steadyseg.core.options import is_rare

PROJECT = Path(__file__).parent.parent
CEILINGS = {
    "core": (7_570, 73),
    "street": (2_810, 21),
    "seg": (6_470, 58),
    "classification": (2_910, 24),
    "export": (2_240, 19),
    "runtime": (3_110, 25),
    "app": (11_380, 113),
    "studies": (10_440, 115),
    "tests": (30_680, 191),
}
"""Lines and files of Python by folder, 3 % above what was reached; lines are as ruff formats them."""

COMMANDS, FLAGS, SETTINGS = 19, 200, 125
"""Commands with flags, flags, and settings without a flag, over all commands with `bench`."""


@pytest.mark.parametrize("folder", CEILINGS)
def test_a_folder_stays_within_its_ceilings(folder: str) -> None:
    files = [path for path in (PROJECT / folder).rglob("*.py") if "__pycache__" not in path.parts]
    lines = sum(len(path.read_text().splitlines()) for path in files)
    max_lines, max_files = CEILINGS[folder]
    assert lines <= max_lines and len(files) <= max_files, (lines, len(files))


def commands(command: Command) -> Iterator[Command]:
    """The commands that have flags."""
    for kind in command.kinds.values():
        yield from commands(kind)
    if command.flags:
        yield command


def flags_of(options: type) -> Iterator[str]:
    """The flags of a command, whatever group they are in."""
    hints = get_type_hints(options, include_extras=True)
    for field in dataclasses.fields(options):
        if inner := nested_options(hints[field.name]):
            yield from flags_of(inner)
        elif not is_rare(hints[field.name]):
            yield field.name


def test_commands_flags_and_settings_stay_within_their_ceilings() -> None:
    """Two commands with one flag have two."""
    jobs = [load(command.flags) for command in commands(STEADYSEG)]
    flags = sum(len([*flags_of(job)]) for job in jobs)
    settings = sum(len([*list_settings(job)]) for job in jobs)
    assert len(jobs) <= COMMANDS and flags <= FLAGS and settings <= SETTINGS, (len(jobs), flags, settings)
