"""Batches for training: loader processes that outlive an epoch."""

import gc
import os

import pytest
import torch
from torch.utils.data import Dataset

from steadyseg.core.errors import InputError
from steadyseg.core.training.loaders import EpochLoader, load_batches


class Keys(Dataset[torch.Tensor]):
    """Every example is its key and the process that loaded it."""

    def __getitem__(self, key: tuple[int, int]) -> torch.Tensor:
        return torch.tensor([*key, os.getpid()])


def order(epoch: int) -> list[int]:
    return [3, 1, 0, 2] if epoch else [0, 1, 2, 3]


def test_the_same_processes_load_one_epoch_after_the_other() -> None:
    load = EpochLoader(Keys(), 1, order, batch_size=2)
    first, second = (torch.cat(list(load(epoch))) for epoch in (0, 1))
    assert first[:, :2].tolist() == [[0, number] for number in order(0)]
    assert second[:, :2].tolist() == [[1, number] for number in order(1)]
    assert set(first[:, 2].tolist()) == set(second[:, 2].tolist()) and os.getpid() not in first[:, 2]


class Refused(Dataset[int]):
    def __getitem__(self, key: int) -> int:
        raise InputError("a.png: no picture")


def test_what_a_process_refuses_is_said_without_its_traceback() -> None:
    with pytest.raises(InputError, match=r"^a\.png: no picture$"):
        next(load_batches(Refused(), 1, order=range(4)))


def test_a_loader_that_is_dropped_ends_its_processes_itself() -> None:
    """Without the garbage collector, which would close their queues first."""
    gc.disable()
    try:
        load = EpochLoader(Keys(), 1, order, batch_size=2)
        process = int(next(load(0))[0, 2])
        del load
        assert not os.path.exists(f"/proc/{process}")
    finally:
        gc.enable()


def test_an_epoch_left_early_is_loaded_from_its_start_again() -> None:
    load = EpochLoader(Keys(), 0, order, batch_size=2)
    begun = load(0)
    next(begun)
    begun.close()
    assert [batch[:, :2].tolist() for batch in load(0)] == [[[0, 0], [0, 1]], [[0, 2], [0, 3]]]
    assert [batch[:, 1].tolist() for batch in load(1)] == [[3, 1], [0, 2]]
