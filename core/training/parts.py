"""The parts of one training, built and checked before its first step, and the run that they are trained in."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from steadyseg.core.errors import InputError
from steadyseg.core.model.checkpoint import CheckpointMeta
from steadyseg.core.training.config import TrainConfig
from steadyseg.core.training.distributed import SINGLE_PROCESS, Processes

Batch = tuple[Tensor, Any]
"""Normalised inputs (B, 3, h, w) and targets (B, ...): class ids, or what else the loss takes, with `len` and `to`."""
Outputs = Tensor | tuple[Tensor, ...]
"""Logits, or in training the logits of several heads."""
Loss = Callable[[Any, Any], tuple[Tensor, Tensor]]
"""(outputs, targets) -> (sum of the weighted losses, sum of the weights), so that parts of a batch add up exactly."""


@dataclass(frozen=True)
class Run:
    """The folder, device and processes of one training."""

    folder: Path
    """Folder of the configuration, the state, the logs and the model."""
    device: torch.device
    processes: Processes = SINGLE_PROCESS
    resume: bool = False
    """Continue after the last epoch that the folder holds."""
    fits_batch: bool = False
    """Lower a batch size that the user did not name to the number of images."""


@dataclass(frozen=True)
class TrainingParts:
    """The network, data and loss that the loop trains with; made by `prepare_segmentation` and
    `prepare_classification`."""

    network: nn.Module
    """Trained in place."""
    batches: Callable[[int], Iterable[Batch]]
    """(epoch, from 0) -> this process's `steps_per_epoch * accumulate` batches, which depend on (seed, epoch) alone."""
    loss: Loss
    steps_per_epoch: int
    images: int
    """Number of training images."""
    held_out: int
    """Number of images that are never trained on, but evaluated while training runs."""
    describe: Callable[[float], CheckpointMeta]
    """(seconds of training) -> the record of the checkpoint."""
    about: tuple[str, ...] = ()
    """Lines about the data, shown before the first step."""
    evaluate: Callable[[nn.Module], dict[str, float]] | None = None
    """(network) -> metrics of single dropout-free passes on the held-out images; None without held-out images."""
    deployed: Callable[[nn.Module], nn.Module] = lambda network: network
    """(trained network) -> the part of it that the checkpoint stores."""
    data: str = ""
    """Digest of the trained and held-out data. A run is resumed only with equal data."""


def fit_batch(config: TrainConfig, images: int, run: Run) -> tuple[TrainConfig, tuple[str, ...]]:
    """Lowers the batch size to the number of images, where `run` allows it, and says so in a remark. The size stays
    even, which mixup needs."""
    most = images // (config.accumulate * run.processes.count)
    size = most - most % 2 if most > 1 else most
    if not (run.fits_batch and 0 < size < config.batch_size):
        return config, ()
    return replace(config, batch_size=size), (f"lowered to fit {images} images: batch_size to {size}",)


def count_steps(images: int, config: TrainConfig, processes: Processes) -> int:
    """Returns the optimiser steps of an epoch; InputError where the images do not fill one step."""
    per_step = config.batch_size * config.accumulate * processes.count
    if images < per_step:
        raise InputError(f"{images} training images do not fill one step of {per_step}; use a smaller batch size")
    return images // per_step


def limit_threads(config: TrainConfig) -> None:
    """Sets the number of CPU threads of this process, where the configuration gives it."""
    if config.threads:
        torch.set_num_threads(config.threads)
