"""What every refusal of bad input has to be: one line, and from the command line exit code 2."""

import subprocess
import sys
from collections.abc import Callable

import pytest
from made.waiting import PATIENCE_S

from steadyseg.__main__ import main
from steadyseg.core.errors import InputError


def refusal(call: Callable[..., object], *arguments: object, **named: object) -> str:
    """The message of the InputError in which the call ends: one line of bearable length."""
    with pytest.raises(InputError) as caught:
        call(*arguments, **named)
    message = str(caught.value)
    assert message.isprintable() and len(message) <= 2000
    return message


def one_line_error(
    capsys: pytest.CaptureFixture[str], *arguments: object, run: Callable[[list[str]], int] = main
) -> str:
    """All that the command prints."""
    assert run([str(argument) for argument in arguments]) == 2
    captured = capsys.readouterr()
    lines = captured.err.strip().splitlines()
    assert len(lines) == 1 and lines[0].startswith("steadyseg: ") and not captured.out, lines
    return lines[0]


def error_after_work(capsys: pytest.CaptureFixture[str], *arguments: object, code: int = 2) -> str:
    """The line after the progress bars, for an error that is known only once the work has begun."""
    capsys.readouterr()
    assert main([str(argument) for argument in arguments]) == code
    captured = capsys.readouterr()
    lines = captured.err.strip().splitlines()
    assert [line.startswith("steadyseg: ") for line in lines] == [False] * (len(lines) - 1) + [True], lines
    assert "Traceback" not in captured.err
    return lines[-1]


def steadyseg(*arguments: object) -> subprocess.CompletedProcess[str]:
    """The command in a process of its own."""
    command = [sys.executable, "-m", "steadyseg", *(str(argument) for argument in arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S)
