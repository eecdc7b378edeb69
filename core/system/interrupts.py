"""Early ends of a command: Ctrl-C, SIGTERM and SIGHUP act alike, and none of them falls inside a write."""

import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

SIGNALS = tuple(getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name))
"""Signals that ask a process to end; Windows has no SIGHUP."""
ONCE_S = 1.0
"""Signals within this time count as one: `timeout` sends SIGTERM twice, and a closing terminal sends SIGHUP twice."""
TORCHRUN = "TORCHELASTIC_RUN_ID"
"""In the environment of the processes that torchrun starts."""


class _Heard:
    """State of the signal handler. Python runs the handler in the main thread, the only thread that changes this."""

    held = False
    waiting = False
    last_s = -ONCE_S


@contextmanager
def interruptible() -> Iterator[None]:
    """SIGTERM and SIGHUP raise KeyboardInterrupt in the main thread, as Ctrl-C does.

    A signal that is ignored stays ignored, such as SIGHUP under `nohup` or SIGINT in a background job. Under torchrun
    nothing changes, and torchrun ends the processes by SIGTERM: a process that waits in C++ would not handle a Ctrl-C.
    """
    if threading.current_thread() is not threading.main_thread() or TORCHRUN in os.environ:
        yield
        return
    terminals = [stream.fileno() for stream in (sys.__stdout__, sys.__stderr__) if stream and stream.isatty()]

    def interrupt(number: int, _: FrameType | None) -> None:
        if number == getattr(signal, "SIGHUP", None):
            for terminal in terminals:  # the terminal is gone; an error of a write to it would lose the report
                os.dup2(os.open(os.devnull, os.O_WRONLY), terminal)
        now_s = time.monotonic()
        again, _Heard.last_s = now_s - _Heard.last_s < ONCE_S, now_s
        if _Heard.held:
            _Heard.waiting = True
        elif not again:
            raise KeyboardInterrupt

    before = {number: signal.getsignal(number) for number in SIGNALS}
    usual = (signal.SIG_DFL, signal.default_int_handler)
    taken = [number for number, handler in before.items() if handler in usual]
    for number in taken:
        signal.signal(number, interrupt)
    began_s = time.monotonic()
    try:
        yield
    finally:
        if _Heard.last_s < began_s:  # after a signal the process ends, and no second signal must cut that short
            for number in taken:
                signal.signal(number, before[number])


@contextmanager
def uninterrupted() -> Iterator[None]:
    """A context that delays an interruption to its end. It acts inside a command and in the main thread, the only one
    that receives signals."""
    if _Heard.held or threading.current_thread() is not threading.main_thread():
        yield
        return
    _Heard.held = True
    try:
        yield
    finally:
        _Heard.held, waited = False, _Heard.waiting
        _Heard.waiting = False
    if waited:  # not reached after an error, which says more and ends the command too
        raise KeyboardInterrupt
