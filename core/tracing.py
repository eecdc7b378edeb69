"""Tracing a network into a graph, beside threads that do the same or run networks of their own."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import torch

_alone = threading.RLock()
_tracers: list[int] = []
"""The thread that traces, as often as it nests; or none."""


@contextmanager
def tracing() -> Iterator[None]:
    """One thread at a time: torch.export keeps one stack of modes for the whole process ("Trying to pop empty mode
    stack").

    Threads that build or run networks meanwhile need not wait: torch's tracer replaces `nn.Module.__call__` for them
    too, but leaves modules alone that are no part of what it traces.
    """
    with _alone:
        _tracers.append(threading.get_ident())
        try:
            yield
        finally:
            _tracers.pop()


def is_exporting() -> bool:
    """Whether this very thread traces.

    torch's own flag is the whole process's: another thread's frames were resized as a graph does it, in float, and 198
    of 386 had wrong labels.
    """
    return torch.compiler.is_exporting() and (not _tracers or threading.get_ident() in _tracers)


def is_fixed(*lengths: int) -> bool:
    """Whether these sizes are plain numbers: while a graph is traced, those that it leaves free are symbols."""
    return all(isinstance(length, int) for length in lengths)
