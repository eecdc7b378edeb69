"""How many weights a record may ask for: a network is built before its file's weights are looked at.

A record of 2 kB built a network of 11 GB in 47 s, and was refused then because the file has no such weights.
"""

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from torch import Tensor, nn
from torch.nn.modules.module import (
    register_module_buffer_registration_hook,
    register_module_parameter_registration_hook,
)

from core.errors import InputError

ALWAYS = 2**28
"""Weights that may be built whatever the file has (1 GB): libraries build parts that they take away again, as the 120
million of a VGG's classifier."""


@contextmanager
def limited_weights(tensors: Mapping[str, Tensor], path: Path) -> Iterator[None]:
    """Inside, a network for these tensors is built by this thread: InputError at the first weight that is far too
    many."""
    thread, built = threading.get_ident(), 0
    most = max(ALWAYS, 2 * sum(tensor.numel() for tensor in tensors.values()))

    def count(module: nn.Module, name: str, weight: Tensor | None) -> None:
        nonlocal built
        if weight is not None and threading.get_ident() == thread:
            built += weight.numel()
            if built > most:  # its memory is asked for but not written to yet
                raise InputError(
                    f"{path}: its record makes a network of more than {most} weights, which it does not hold"
                )

    handles = [
        register(count)
        for register in (register_module_parameter_registration_hook, register_module_buffer_registration_hook)
    ]
    try:
        yield
    except (RuntimeError, MemoryError) as error:  # torch's, of a single weight larger than the memory
        first = (str(error).strip() or type(error).__name__).splitlines()[0]
        raise InputError(f"{path}: its record makes no network ({first})") from error
    finally:
        for handle in handles:
            handle.remove()
