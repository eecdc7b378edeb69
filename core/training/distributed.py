"""Training in several processes that torchrun starts: their ranks, and the values that they exchange."""

import gc
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import TypeVar, cast

import torch
import torch.distributed as dist
from torch import nn

from steadyseg.core.errors import CheckFailed, InputError
from steadyseg.core.system.machine import choose_device

PATIENCE = timedelta(minutes=5)
"""Patience with another process of the same training: a process that is silent for longer is frozen or lost."""
WHILE_ONE_WORKS = timedelta(days=7)
"""Time-out of all other processes while rank 0 evaluates and saves alone."""
LOST = ("gloo/transport", "pair closure")
"""Words in gloo's errors, which are RuntimeErrors: "[.../gloo/transport/tcp/pair.cc:553] Connection closed by peer"."""

T = TypeVar("T")


@dataclass(frozen=True)
class Processes:
    """This process and the others that train with it; with one process, all methods return at once."""

    rank: int = 0
    """0..count - 1; rank 0 alone evaluates, writes and prints."""
    count: int = 1
    patient: dist.ProcessGroup | None = None
    """Group of the same processes with the longer time-out."""

    @property
    def is_main(self) -> bool:
        """True for rank 0."""
        return self.rank == 0

    def sums(self, *values: float) -> tuple[float, ...]:
        """Sums each value over all processes in float64; NaN in one process gives NaN in all."""
        if self.count == 1:
            return values
        summed = torch.tensor(values, dtype=torch.float64)
        dist.all_reduce(summed)
        return tuple(summed.tolist())

    def all_gather(self, value: T) -> list[T]:
        """Returns the value of every process, in the order of their ranks."""
        values: list[T] = [value] * self.count
        if self.count > 1:
            dist.all_gather_object(values, value)
        return values

    def wait(self) -> None:
        """Returns when every process has called it; waits while rank 0 evaluates and saves."""
        if self.count > 1:
            dist.all_reduce(torch.zeros(1), group=self.patient)

    def together(self, work: Callable[[], T]) -> T:
        """Runs work() in every process. If a process raises InputError, rank 0 raises this error and all other
        processes raise SystemExit(2), so that the line is printed once.
        """
        result, complaint = None, None
        try:
            result = work()
        except InputError as error:
            if self.count == 1:
                raise
            complaint = str(error)
        complaints = [text for text in self.all_gather(complaint) if text is not None]
        if complaints:
            raise InputError(complaints[0]) if self.is_main else SystemExit(2)
        return cast(T, result)

    def share(self, order: torch.Tensor, batch_size: int) -> torch.Tensor:
        """Returns the N / count sample numbers of this process out of an epoch's N; N is a multiple of batch_size *
        count.

        Batch by batch, the processes together take the samples of one process with batches of batch_size * count.
        """
        return order.view(-1, self.count, batch_size)[:, self.rank].flatten()


SINGLE_PROCESS = Processes()


def synchronise(network: nn.Module) -> nn.Module:
    """Replaces every BatchNorm by SyncBatchNorm, whose statistics are over all processes' batches; CUDA only.

    The conversion is timm's: torch's would lose the activation that is part of some of timm's BatchNorms.
    """
    from timm.layers.norm_act import convert_sync_batchnorm

    return convert_sync_batchnorm(network)


@contextmanager
def join_processes(device: str) -> Iterator[Processes]:
    """Joins the processes that torchrun started (`SINGLE_PROCESS` without it) and leaves them at the end.

    On CUDA every process takes the GPU of its LOCAL_RANK, which "cuda" means from then on. Tensors on a GPU are sent by
    NCCL, all others by gloo. InputError for an unknown device, and where there are more processes than GPUs;
    CheckFailed where another process does not answer.
    """
    if not dist.is_torchelastic_launched():
        yield SINGLE_PROCESS
        return
    if choose_device(device).type == "cuda":
        local = int(os.environ["LOCAL_RANK"])
        if local >= torch.cuda.device_count():
            raise InputError(
                f"torchrun started {os.environ['LOCAL_WORLD_SIZE']} processes here, but there are "
                f"{torch.cuda.device_count()} GPUs; use --nproc_per_node {torch.cuda.device_count()}"
            )
        torch.cuda.set_device(local)
        dist.init_process_group("cpu:gloo,cuda:nccl", timeout=PATIENCE)
    else:
        dist.init_process_group("gloo", timeout=PATIENCE)
    patient = cast(dist.ProcessGroup, dist.new_group(timeout=WHILE_ONE_WORKS, backend="gloo"))  # all processes
    try:
        yield Processes(dist.get_rank(), dist.get_world_size(), patient)
    except RuntimeError as error:
        if not isinstance(error, dist.DistError) and not any(words in str(error) for words in LOST):
            raise
        raise CheckFailed(
            f"process {dist.get_rank()}: another one has ended, or has not answered for {PATIENCE.seconds // 60} "
            "minutes; the last whole epoch is saved: --resume goes on from it"
        ) from error
    finally:
        # gloo's threads end with the last reference to the group, and DDP holds one in a cycle. A thread that outlives
        # Python and then drops the tensors of its last message aborts the process (seen in one run of ten).
        dist.destroy_process_group()
        gc.collect()
