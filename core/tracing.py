"""Tracing a module into a graph: its inputs and outputs, and a lock for threads that trace at the same time."""

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

import torch
from torch import Tensor

_lock = threading.RLock()
_tracers: list[int] = []
"""The identifier of the tracing thread, once for each nested `tracing`; empty if no thread traces."""


@dataclass(frozen=True)
class Signature:
    """The names of a graph's inputs and outputs in order, and example inputs."""

    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    example: tuple[Tensor, ...]
    inner: tuple[str, ...] = ()
    """The last names of `outputs`: tensors inside the graph at which a runtime can cut out the network."""
    free_sizes: Mapping[str, Mapping[int, str]] = field(default_factory=dict)
    """Names of the sizes that stay free, by input and axis."""
    min_sizes: Mapping[str, int] = field(default_factory=dict)
    """Smallest values of free sizes, by name; 2 where no value is given."""
    mask_rates: Mapping[str, float] = field(default_factory=dict)
    """Dropout rates of the inputs that are masks, by name."""


@contextmanager
def tracing() -> Iterator[None]:
    """A context in which one thread at a time traces. In torch.export the whole process shares one stack of modes, and
    two tracing threads fail with "Trying to pop empty mode stack". Threads that build or run networks meanwhile need
    not wait: torch's tracer replaces `nn.Module.__call__` for all threads, but skips modules that it does not trace.
    """
    with _lock:
        _tracers.append(threading.get_ident())
        try:
            yield
        finally:
            _tracers.pop()


def is_exporting() -> bool:
    """True if this thread is tracing a graph.

    torch's own flag belongs to the whole process. With it, frames of another thread were resized in float, as a graph
    does it, and 198 of 386 had wrong labels.
    """
    return torch.compiler.is_exporting() and (not _tracers or threading.get_ident() in _tracers)


def is_fixed(*lengths: int) -> bool:
    """True if the sizes are plain integers; during tracing, free sizes are symbols."""
    return all(isinstance(length, int) for length in lengths)
