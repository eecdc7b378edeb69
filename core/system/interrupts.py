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
"""Two signals within this are one: `timeout` sends SIGTERM twice, a terminal that closes SIGHUP."""
TORCHRUN = "TORCHELASTIC_RUN_ID"
"""In the environment of the processes that torchrun starts."""


class _Heard:
    """State of the signal handler; only the main thread, in which Python runs it, changes this."""

    held = False
    waiting = False
    last_s = -ONCE_S


@contextmanager
def interruptible() -> Iterator[None]:
    """SIGTERM and SIGHUP raise KeyboardInterrupt in the main thread, as Ctrl-C does.

    A signal that is ignored stays so: `nohup` does that to SIGHUP, a shell's background job to SIGINT. What torchrun
    started is ended by torchrun, with SIGTERM: a process that waits for another one in C++ would never handle a Ctrl-C.
    """
    if threading.current_thread() is not threading.main_thread() or TORCHRUN in os.environ:
        yield
        return
    terminals = [stream.fileno() for stream in (sys.__stdout__, sys.__stderr__) if stream and stream.isatty()]

    def interrupt(number: int, _: FrameType | None) -> None:
        if number == getattr(signal, "SIGHUP", None):
            for terminal in terminals:  # it is gone: a write to it would be an error, and the report lost with it
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
        if _Heard.last_s < began_s:  # else the process ends now, and a second signal must not cut that short
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
    if waited:  # an error on the way says more, and ends the command too
        raise KeyboardInterrupt
