"""Batches for training, loaded by processes of their own."""

import shutil
import signal
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import count, islice
from typing import Any

from torch.utils.data import DataLoader, Dataset

from steadyseg.core.errors import InputError
from steadyseg.core.system.interrupts import uninterrupted

LONGEST_TMPDIR = 75
"""Longest TMPDIR, in characters, that loader processes can use.

They send batches through the socket TMPDIR/pymp-XXXXXXXX/listener-XXXXXXXX, whose name may have 107 characters
(unix(7)). With a longer one a loader's error is printed and the training waits for ever.
"""


class EpochLoader:
    """Loads the batches of consecutive epochs with the same loader processes.

    They load the next epoch's first batches while the current epoch ends, so there is no pause between the two. For
    CamVid's stills the pause took 0.2 of 2.8 s, with two processes.

    The processes end when the last reference to the loader goes. So `examples` and `order` must not refer to the
    loader's holder. In a reference cycle Python closes the queues first, and torch then waits 5 s for the processes.
    """

    def __init__(
        self,
        examples: "Dataset[Any]",
        loaders: int,
        order: Callable[[int], Sequence[Any]],
        batch_size: int | None = None,
    ) -> None:
        """`order`: epoch, from 0 -> its keys, which fill whole batches. `examples` takes (epoch, key)."""
        self.examples, self._loaders, self._order, self._batch_size = examples, loaders, order, batch_size
        self._next, self._stream = -1, iter(())

    def __call__(self, epoch: int) -> Iterator[Any]:
        """Yields the batches of this epoch."""
        if epoch != self._next:
            keys = _keys(self._order, epoch)
            self._stream = load_batches(self.examples, self._loaders, batch_size=self._batch_size, order=keys)
        self._next = -1  # stays if the caller leaves this epoch early: the stream is then not at an epoch's start
        yield from islice(self._stream, len(self._order(epoch)) // (self._batch_size or 1))
        self._next = epoch + 1


def _keys(order: Callable[[int], Sequence[Any]], first_epoch: int) -> Iterator[tuple[int, Any]]:
    for epoch in count(first_epoch):
        for key in order(epoch):
            yield epoch, key


def load_batches(
    examples: "Dataset[Any]", loaders: int, *, batch_size: int | None = None, order: Iterable[Any] | None = None
) -> Iterator[Any]:
    """Yields batches of the examples in that order; the last one may be smaller. If the batch size is None, an example
    is a batch.

    With 0 loaders this process loads them. InputError where TMPDIR is too long, or /dev/shm too small, for other
    processes.
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
    try:
        yield from batches
    except InputError as error:  # torch puts the traceback of a loader process before the text
        raise InputError(str(error).rpartition("InputError: ")[2].strip()) from error
    except RuntimeError as error:
        if "shared memory" not in str(error):
            raise
        raise InputError(
            f"/dev/shm has {shutil.disk_usage('/dev/shm').total / 1e6:.1f} MB, too few for the batches of {loaders} "
            "loader processes; set --config loaders=0, or give a container more (docker run --shm-size 1g)"
        ) from error


def _prepare(_: int) -> None:
    """Prepares a loader process: it prints no tracebacks of threads, and ends on SIGTERM without a word.

    Errors of the loader itself are raised in the training. Tracebacks of its threads, when the training ends first, are
    of no use. `timeout` sends SIGTERM to the whole process group. The handler of torch would leave the loader's folder
    behind and raise an error in a training that is about to end by itself. A KeyboardInterrupt would be printed
    where it meets a loader that is ending.
    """
    sys.excepthook = lambda *_: None
    signal.signal(signal.SIGTERM, lambda *_: sys.exit())
