"""Ctrl-C, SIGTERM and SIGHUP end a real process alike, once, and never inside a write."""

import os
import pty
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from made.waiting import PATIENCE_S

PROJECT = Path(__file__).parents[2]
WAIT = """
import sys, time
from steadyseg.core.system.interrupts import interruptible, uninterrupted
try:
    with interruptible():
        print("ready", flush=True)
        time.sleep(60)
        print("slept")
except KeyboardInterrupt:
    time.sleep(0.2)  # a second signal would end it here
    print("cleaned up")
    sys.exit(130)
"""
WRITE = """
import sys, time
from steadyseg.core.system.interrupts import interruptible, uninterrupted
written, counted = 0, 0
try:
    with interruptible():
        print("ready", flush=True)
        while True:
            with uninterrupted():
                written += 1
                time.sleep(0.3)
                counted += 1
except KeyboardInterrupt:
    print(written - counted)
"""
HANG_UP = """
import os, sys, time
from steadyseg.core.system.interrupts import interruptible
try:
    with interruptible():
        print("ready", flush=True)
        time.sleep(60)
except KeyboardInterrupt:
    print("to nobody", flush=True)
    print("to nobody", file=sys.stderr, flush=True)
    open(sys.argv[1], "w").write("report")
"""


def started(code: str, **options: object) -> "subprocess.Popen[str]":
    process = subprocess.Popen([sys.executable, "-c", code], cwd=PROJECT, stdout=subprocess.PIPE, text=True, **options)
    assert process.stdout is not None and process.stdout.readline() == "ready\n"
    return process


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_each_of_them_ends_it_as_ctrl_c_does_though_it_comes_twice(number: signal.Signals) -> None:
    with started(WAIT) as process:
        process.send_signal(number)
        process.send_signal(number)  # `timeout` and a closing terminal do that
        assert process.communicate(timeout=PATIENCE_S)[0] == "cleaned up\n" and process.returncode == 130


def test_a_hang_up_that_nohup_ignores_stays_ignored() -> None:
    with started(WAIT, preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN)) as process:
        process.send_signal(signal.SIGHUP)
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(0.5)
        process.send_signal(signal.SIGTERM)
        assert process.wait(PATIENCE_S) == 130


def test_what_is_begun_is_finished_first() -> None:
    with started(WRITE) as process:
        process.send_signal(signal.SIGTERM)
        assert process.communicate(timeout=PATIENCE_S)[0] == "0\n"


def test_a_terminal_that_closes_costs_no_report(tmp_path: Path) -> None:
    master, terminal = pty.openpty()
    command = [sys.executable, "-c", HANG_UP, str(tmp_path / "report")]
    process = subprocess.Popen(
        ["setsid", "--ctty", *command], cwd=PROJECT, stdin=terminal, stdout=terminal, stderr=terminal
    )
    os.close(terminal)
    assert b"ready" in os.read(master, 100)
    os.close(master)  # the kernel sends SIGHUP, and every write to the terminal is an error from now on
    assert process.wait(PATIENCE_S) == 0 and (tmp_path / "report").read_text() == "report"


def test_main_leaves_the_handlers_as_they_were() -> None:
    from steadyseg.app.cli import main

    before = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)]
    assert main(["no-such-command"]) == 2
    assert [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)] == before
