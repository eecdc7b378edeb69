"""Batches for training, loaded by processes of their own."""

import signal
import sys
import tempfile
from collections.abc import Iterator, Sequence
from typing import Any

from torch.utils.data import DataLoader, Dataset

from core.errors import InputError
from core.system.interrupts import uninterrupted

LONGEST_TMPDIR = 75
"""Longest TMPDIR, in characters, that loader processes can use.

They send batches through the socket TMPDIR/pymp-XXXXXXXX/listener-XXXXXXXX, whose name may have 107 characters
(unix(7)). With a longer one a loader's error is printed and the training waits for ever.
"""


def load_batches(
    examples: "Dataset[Any]", loaders: int, *, batch_size: int | None = None, order: Sequence[int] | None = None
) -> Iterator[Any]:
    """Yields batches of the examples in that order; the last one may be smaller. If the batch size is None, an example
    is a batch.

    With 0 loaders this process loads them. InputError where TMPDIR is too long for other processes.
    """
    folder = tempfile.gettempdir()
    if loaders and len(folder) > LONGEST_TMPDIR:
        raise InputError(
            f"TMPDIR has {len(folder)} characters, and loader processes can use at most {LONGEST_TMPDIR}; set a "
            "shorter one, or --config loaders=0"
        )
    loader = DataLoader(
        examples,
        batch_size=batch_size,
        sampler=order,
        num_workers=loaders,
        multiprocessing_context="fork" if loaders else None,
        worker_init_fn=_prepare,
    )
    with uninterrupted():  # Python ignores a KeyboardInterrupt in fork handlers: two of eleven SIGTERMs were lost
        batches = iter(loader)
    yield from batches


def _prepare(_: int) -> None:
    """Prepares a loader process: it prints no tracebacks of threads, and ends on SIGTERM as on Ctrl-C.

    Errors of the loader itself are raised in the training. Tracebacks of its threads, when the training ends first, are
    of no use. `timeout` sends SIGTERM to the whole process group: torch's own handler would leave the loader's folder
    behind, and raise an error in a training that is about to end by itself.
    """
    sys.excepthook = lambda *_: None
    signal.signal(signal.SIGTERM, signal.default_int_handler)
