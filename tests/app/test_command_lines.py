"""The command lines of the documents: the program takes each of them."""

import json
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest

from steadyseg.app.cli import read_flags
from steadyseg.app.commands import find_command

PROJECT = Path(__file__).parents[2]
PAGES = [PROJECT / "README.md", *sorted((PROJECT / "docs").rglob("*.md"))]


COMMAND = re.compile(r"\s*(?:torchrun .* -- )?(?:\.venv/bin/)?steadyseg (?!->)([^#]*)")


def command_lines(page: Path) -> Iterator[str]:
    """The lines of code blocks that call the program, continued ones joined, without comments."""
    for block in re.findall(r"```\w*\n(.*?)```", page.read_text(), re.DOTALL):
        for line in block.replace("\\\n", " ").splitlines():
            if found := COMMAND.match(line):
                yield found[1].strip()


@pytest.mark.parametrize("page", [page for page in PAGES if any(command_lines(page))], ids=str)
def test_the_program_takes_every_command_line_of_the_page(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "recipe.toml").write_text("[loop]\nepochs = 3\n")
    (tmp_path / "runs/mine").mkdir(parents=True)
    (tmp_path / "runs/mine/config.json").write_text(json.dumps({"data": "CamVid", "loop": {"epochs": 3}}))
    for line in command_lines(page):
        program, command, words = find_command(shlex.split(line))
        if command.flags:
            try:
                read_flags(program, command, words)
            except SystemExit as stop:  # --help and --config list
                assert stop.code == 0, line
        else:
            assert not words, line


def test_the_pages_show_every_command() -> None:
    from steadyseg.app.commands import ANALYSES, STEADYSEG, TRAININGS

    shown = {tuple(line.split()[:2]) for page in PAGES for line in command_lines(page)}
    names = [("train", kind) for kind in TRAININGS] + [("analyze", kind) for kind in ANALYSES]
    assert set(names) <= shown and set(STEADYSEG.kinds) - {"models"} <= {words[0] for words in shown}
