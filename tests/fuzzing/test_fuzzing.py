"""The fuzzing study reports tracebacks, hangs, crashes and memory."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from made.waiting import PATIENCE_S

from fuzzing import trial
from fuzzing.kinds import KINDS
from fuzzing.trial import try_file
from steadyseg.core.errors import InputError


def is_whole(path: Path) -> Iterator[str]:
    yield "opened"
    yield "run"


def is_refused(path: Path) -> Iterator[str]:
    yield "opened"
    raise InputError(f"{path}: no")


def fails(path: Path) -> Iterator[str]:
    yield "opened"
    raise KeyError("classes")


def hangs(path: Path) -> Iterator[str]:
    yield "opened"
    while True:
        pass


def crashes(path: Path) -> Iterator[str]:
    yield "opened"
    os.kill(os.getpid(), signal.SIGKILL)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("stages", "end", "why"),
    [
        (is_whole, "whole", ""),
        (is_refused, "refused", "x: no"),
        (fails, "traceback", "KeyError in test_fuzzing.py"),
        (hangs, "hang", ""),
        (crashes, "killed", "SIGKILL"),
    ],
)
def test_every_end_of_a_trial_is_told(stages, end, why, monkeypatch):
    monkeypatch.setattr(trial, "SECONDS", 1 if end == "hang" else int(PATIENCE_S))
    found = try_file(stages, Path("x"))
    assert found.end == end and why in found.why
    assert found.stages == (("opened", "run") if end == "whole" else ("opened",))


@pytest.mark.slow
def test_the_memory_of_a_trial_is_told() -> None:
    """It runs in a separate process: a child starts with its parent's memory, and the tests have 1.6 GB."""
    program = """
from pathlib import Path
from fuzzing.trial import try_file

def fills(path):
    yield str(len(b"x" * 300_000_000))

print(try_file(lambda path: iter(()), Path("x")).peak_bytes, try_file(fills, Path("x")).peak_bytes)
"""
    environment = os.environ | {"PYTHONPATH": str(Path(__file__).parents[1])}
    empty, full = map(int, subprocess.check_output([sys.executable, "-c", program], env=environment).split())
    assert full - empty > 200_000_000


@pytest.mark.long
@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "graph"])  # whose seeds take 3 minutes
def test_damaged_files_are_opened_or_refused_in_one_line(kind: str) -> None:
    """A hang is no failure here: a busy machine has the same end."""
    count = 60 if kind == "foreign graph" else 200
    command = [sys.executable, "-m", "fuzzing", "--kinds", kind, "--count", str(count)]
    environment = os.environ | {"PYTHONPATH": "tests"}
    done = subprocess.run(command, cwd=Path(__file__).parents[2], env=environment, capture_output=True, text=True)
    record = json.loads(done.stdout)[kind]
    assert record["inputs"] == count and record["passed_first_check"] > count / 2
    assert not [one for one in record["found"] if ": hang" not in one]
