"""Batches for training, made ready by processes of their own."""

import signal
import sys
import tempfile
from collections.abc import Iterator, Sequence
from typing import Any

from torch.utils.data import DataLoader, Dataset

from core.errors import InputError
from core.system.interrupts import uninterrupted

LONGEST_TMPDIR = 75
"""Characters. Processes hand their batches over by a socket, TMPDIR/pymp-XXXXXXXX/listener-XXXXXXXX, whose name has at
most 107 (unix(7)): with a longer one a worker's error is printed and the training waits for ever."""


def load_batches(
    examples: "Dataset[Any]", workers: int, *, batch_size: int | None = None, order: Sequence[int] | None = None
) -> Iterator[Any]:
    """Batches of the examples in that order, the last one maybe smaller; without a size each example is a batch
    already.

    0 workers: this process makes them. Raises InputError where TMPDIR is too long for others.
    """
    folder = tempfile.gettempdir()
    if workers and len(folder) > LONGEST_TMPDIR:
        raise InputError(
            f"TMPDIR has {len(folder)} characters, and data workers can use at most {LONGEST_TMPDIR}; set a "
            f"shorter one, or "
            "--workers 0"
        )
    loader = DataLoader(
        examples,
        batch_size=batch_size,
        sampler=order,
        num_workers=workers,
        multiprocessing_context="fork" if workers else None,
        worker_init_fn=_prepare,
    )
    with (
        uninterrupted()
    ):  # Python ignores a KeyboardInterrupt in what it calls after a fork: two of eleven SIGTERMs were lost
        batches = iter(loader)
    yield from batches


def _prepare(_: int) -> None:
    """A worker's own errors travel to the training; what its threads say when the training ends without them does not
    help.

    A SIGTERM to the whole group, as `timeout` sends it, ends a worker as Ctrl-C does: torch's own handler would let it
    die, with its folder left behind and an error in the training, which is about to end by itself.
    """
    sys.excepthook = lambda *_: None
    signal.signal(signal.SIGTERM, signal.default_int_handler)
