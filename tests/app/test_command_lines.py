"""The command lines of the documents: the program takes each of them."""

import json
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest

from steadyseg.__main__ import STEADYSEG
from steadyseg.app.cli import read_flags
from steadyseg.app.commands import TRAININGS, find_command
from steadyseg.studies.analysis.__main__ import ANALYSES, PROGRAM

PROJECT = Path(__file__).parents[2]
PAGES = [PROJECT / "README.md", *sorted((PROJECT / "docs").rglob("*.md"))]


ROOTS = {"steadyseg": STEADYSEG, PROGRAM: ANALYSES}
COMMAND = re.compile(rf"\s*(?:torchrun .* -- )?(?:\.venv/bin/)?({'|'.join(ROOTS)}) (?!->)([^#]*)")


def command_lines(page: Path) -> Iterator[tuple[str, str]]:
    """The programs of code blocks with the rest of their lines, continued ones joined, without comments."""
    for block in re.findall(r"```\w*\n(.*?)```", page.read_text(), re.DOTALL):
        for line in block.replace("\\\n", " ").splitlines():
            if found := COMMAND.match(line):
                yield found[1], found[2].strip()


@pytest.mark.parametrize("page", [page for page in PAGES if any(command_lines(page))], ids=str)
def test_the_program_takes_every_command_line_of_the_page(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "recipe.toml").write_text("[loop]\nepochs = 3\n")
    (tmp_path / "runs/mine").mkdir(parents=True)
    (tmp_path / "runs/mine/config.json").write_text(json.dumps({"data": "CamVid", "loop": {"epochs": 3}}))
    for name, line in command_lines(page):
        program, command, words = find_command(shlex.split(line), ROOTS[name])
        if command.flags:
            try:
                read_flags(program, command, words)
            except SystemExit as stop:  # --help and --config list
                assert stop.code == 0, line
        else:
            assert not words, line


def test_the_pages_show_every_command() -> None:
    lines = [(ROOTS[name], *line.split()[:2]) for page in PAGES for name, line in command_lines(page)]
    shown = {words[1] for words in lines if words[0] is STEADYSEG}
    assert {("train", kind) for kind in TRAININGS} <= {words[1:] for words in lines}
    assert set(ANALYSES.kinds) <= {words[1] for words in lines if words[0] is ANALYSES}
    assert set(STEADYSEG.kinds) - {"models"} <= shown
