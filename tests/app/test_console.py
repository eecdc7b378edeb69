"""Names from elsewhere are text on the terminal, never markup."""

from pathlib import Path

import pytest
from rich.table import Table

from steadyseg.app.console import Console, print_table
from steadyseg.core.method import Method, mode_title

PROJECT = Path(__file__).parents[2]


def test_a_name_that_looks_like_markup_is_printed_as_it_is(capsys: pytest.CaptureFixture[str]) -> None:
    table = Table("class", title="[/i] of :smile:")
    table.add_row("[/b]")
    console = Console()
    console.print(table)
    console.print("model [/red]", soft_wrap=True)
    shown = capsys.readouterr().out
    assert all(text in shown for text in ("[/b]", "model [/red]", "[/i] of", ":smile:"))


def test_short_names_have_a_word_beside_them(capsys: pytest.CaptureFixture[str]) -> None:
    print_table("of a network", ("metric", "aurc"), [("aurc", 0.1), ("cec", 0.2), ("Car", 0.3)])
    shown = capsys.readouterr().out
    assert shown.count("area under") == 2
    for words in ("area under risk-coverage (aurc) ", "cross-entropy of neighbouring frames (cec) ", " Car "):
        assert words in shown
    assert mode_title(Method("vq-bnn", 5, 8.0)) == "MC dropout smoothed (vq-bnn x5, decay time tau 8)"


def test_a_name_cannot_steer_the_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    table = Table("class")
    table.add_row("\x1b[2Jred\x9b31m")
    Console().print(table)
    Console().print("note: \x1b]0;title\x07", soft_wrap=True)
    shown = capsys.readouterr().out
    assert "red" in shown and "note" in shown and not {"\x1b", "\x9b", "\x07"} & set(shown)


def test_every_command_prints_to_that_console() -> None:
    others = [
        path.relative_to(PROJECT)
        for path in (PROJECT / "app").rglob("*.py")
        if any(words in path.read_text() for words in ("from rich.console", "rich.console.Console("))
        and path.name != "console.py"
    ]
    assert not others
