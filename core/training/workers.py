"""Batches for training, made ready by processes of their own."""

import sys
from collections.abc import Iterator, Sequence
from typing import Any

from torch.utils.data import DataLoader, Dataset

from core.interrupts import uninterrupted


def load_batches(
    examples: "Dataset[Any]", workers: int, *, batch_size: int | None = None, order: Sequence[int] | None = None
) -> Iterator[Any]:
    """Batches of the examples in that order, the last one maybe smaller; without a size each example is a batch already.

    0 workers: this process makes them.
    """
    loader = DataLoader(
        examples, batch_size=batch_size, sampler=order, num_workers=workers,
        multiprocessing_context="fork" if workers else None, worker_init_fn=_keep_quiet,
    )  # fmt: skip
    with (
        uninterrupted()
    ):  # Python ignores a KeyboardInterrupt in what it calls after a fork: two of eleven SIGTERMs were lost
        batches = iter(loader)
    yield from batches


def _keep_quiet(_: int) -> None:
    """A worker's own errors travel to the training; what its threads say when the training ends without them does not help."""
    sys.excepthook = lambda *_: None
