"""Flags and settings of all commands, and the command lines of the documents."""

import contextlib
import io
import json
import re
import shlex
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_type_hints

import pytest

from steadyseg.__main__ import main
from steadyseg.app.cli import read_flags
from steadyseg.app.commands import STEADYSEG, TRAININGS, Command, find_command, load
from steadyseg.app.parsing import help_texts, nested_options
from steadyseg.app.settings import list_settings
from steadyseg.core.options import is_rare
from steadyseg.core.training.run_folder import config_record
from steadyseg.studies.analysis.__main__ import ANALYSES, PROGRAM

COMMANDS, FLAGS, SETTINGS = 19, 200, 125
"""Ceilings of commands with flags, of their flags, and of settings without a flag."""
SCREEN = 50
"""Lines of the longest `--help` of a training, in a terminal of 120 columns."""


def commands(command: Command = STEADYSEG, name: str = "") -> Iterator[tuple[str, Command]]:
    for word, kind in command.kinds.items():
        yield from commands(kind, f"{name} {word}".strip())
    if command.flags:
        yield name, command


def flags_of(options: Any) -> Iterator[str]:
    """The flags of a command, whatever group they are in."""
    for name, hint in get_type_hints(options, include_extras=True).items():
        if inner := nested_options(hint):
            yield from flags_of(inner)
        elif not is_rare(hint) and "ClassVar" not in str(hint):
            yield name


def read(*words: str) -> Any:
    return read_flags(*find_command(list(words), STEADYSEG))


def test_the_commands_have_few_flags_and_settings() -> None:
    flags = {name: len([*flags_of(load(command.flags))]) for name, command in commands()}
    settings = {name: len([*list_settings(load(command.flags))]) for name, command in commands()}
    assert len(flags) <= COMMANDS and sum(flags.values()) <= FLAGS and max(flags.values()) <= 24, flags
    assert sum(settings.values()) <= SETTINGS, settings


def test_every_flag_and_setting_has_one_name_and_a_meaning() -> None:
    def meanings(options: Any) -> Iterator[tuple[str, str]]:
        for name, hint in get_type_hints(options, include_extras=True).items():
            if inner := nested_options(hint):
                yield from meanings(inner)
            elif "ClassVar" not in str(hint):
                yield name, help_texts(options).get(name, "")

    for command_name, command in commands():
        named = list(meanings(load(command.flags)))
        twice = [name for name, count in Counter(name for name, _ in named).items() if count > 1]
        assert not twice, (command_name, twice)
        assert not [name for name, text in named if not text], command_name


@pytest.mark.parametrize("task", ["seg", "classification"])
def test_the_help_of_a_training_is_one_screen(task: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "120")
    shown = io.StringIO()
    with pytest.raises(SystemExit), contextlib.redirect_stdout(shown):
        main(["train", task, "--help"])
    lines = shown.getvalue().splitlines()
    assert len(lines) <= SCREEN and "--config list" in shown.getvalue()


def test_later_words_count_and_flags_count_most(tmp_path: Path) -> None:
    (tmp_path / "a.toml").write_text('epochs = 7\n[augment]\npaste = 0.3\ncorruptions = ["spatter"]\n')
    words = ["--preset", "replica", "--config", str(tmp_path / "a.toml"), "flip=0.1", "paste=0.4", "--batch-size", "9"]
    config = read("train", "seg", *words, "--epochs", "3").config
    assert (config.unet.channels, config.loop.batch_size, config.loop.epochs) == (64, 9, 3)
    assert (config.augment.paste, config.augment.flip, config.augment.corruptions) == (0.4, 0.1, ("spatter",))
    values = "decoder_channels=4,3 encoder_smoothing=false exclude=None dropout_places= classes=c.json".split()
    config = read("train", "seg", "--preset", "realtime", "--config", *values).config
    assert config.smp.decoder_channels == (4, 3) and config.smp.encoder_smoothing is False
    assert config.exclude is None and config.unet.dropout_places == () and config.classes == Path("c.json")


def test_a_run_and_the_list_are_files_that_make_the_same_training(tmp_path, capsys):
    expected = read("train", "seg", "--preset", "mobile", "--config", "hue=0.2", "--seed", "5").config
    (tmp_path / "config.json").write_text(json.dumps(config_record(expected) | {"processes": 2}))
    assert read("train", "seg", "--config", str(tmp_path / "config.json")).config == expected
    with pytest.raises(SystemExit):
        main(["train", "seg", "--preset", "mobile", "--config", "list"])
    (tmp_path / "list.toml").write_text(capsys.readouterr().out)
    again = read("train", "seg", "--preset", "cpu", "--config", str(tmp_path / "list.toml"), "hue=0.2", "seed=5")
    assert again.config.smp == expected.smp and again.config.augment == expected.augment


def test_the_folder_of_a_resumed_run_may_have_an_equals_sign(tmp_path: Path) -> None:
    expected, run = read("train", "seg", "--preset", "mobile", "--seed", "5").config, tmp_path / "seed=5"
    run.mkdir()
    (run / "config.json").write_text(json.dumps(config_record(expected) | {"processes": 2, "retired": 1}))
    assert read("train", "seg", "--resume", "--run", str(run)).config == expected


def test_only_commands_with_settings_that_have_no_flag_take_config() -> None:
    for name, command in commands():
        options = load(command.flags)
        takes_config = "settings" in flags_of(options)
        assert takes_config == bool(list(list_settings(options))), name


def test_a_byte_order_mark_is_no_part_of_a_file(tmp_path: Path) -> None:
    """Notepad writes it."""
    mark = b"\xef\xbb\xbf"
    (tmp_path / "c.toml").write_bytes(mark + b"legend = false\n")
    (tmp_path / "c.json").write_bytes(mark + b'{"legend": false}')
    for name in ("c.toml", "c.json"):
        assert not read("video", "a.mp4", "--config", str(tmp_path / name)).options.legend


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
def test_the_program_takes_every_command_line_of_the_page(page, tmp_path, monkeypatch):
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
