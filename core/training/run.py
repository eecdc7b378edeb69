"""What the trainings of both rooms are: a run folder, the loop, and at its end a checkpoint with its record."""

import time
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sized
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from core.errors import InputError
from core.model.checkpoint import CheckpointMeta, save_checkpoint
from core.system.machine import choose_device, trains_faster_in_bf16
from core.training.config import TrainConfig
from core.training.distributed import SINGLE_PROCESS, Processes
from core.training.loop import Batch, EpochDone, StepDone, fit
from core.training.run_folder import MODEL_NAME, open_run, snapshot_epochs, snapshot_file


class TrainingRun(ABC):
    """One training made ready: whoever derives from it opens and checks everything before the first step."""

    network: nn.Module
    held_back: Sized
    """What is never trained on but evaluated while training runs; nothing is evaluated where it is empty."""

    def __init__(self, config: Any, run: Path, device: str, processes: Processes = SINGLE_PROCESS) -> None:
        """`config`, with a TrainConfig `loop` in it, is the record that a resumed run must have too."""
        self.config, self.run, self.processes = config, run, processes
        self.device = choose_device(device)
        if self.loop.threads:
            torch.set_num_threads(self.loop.threads)

    @property
    def loop(self) -> TrainConfig:
        """The part of the configuration that the loop reads."""
        return self.config.loop

    def count_steps(self, images: int) -> None:
        """Sets `steps_per_epoch` and `total_steps`; InputError where the images do not fill one step."""
        per_step = self.loop.batch_size * self.loop.accumulate * self.processes.count
        self.steps_per_epoch = images // per_step
        if not self.steps_per_epoch:
            raise InputError(f"{images} training images do not fill one step of {per_step}; use a smaller batch size")
        self.total_steps = self.loop.epochs * self.steps_per_epoch

    def events(self, resume: bool = False) -> Iterator[StepDone | EpochDone]:
        """Runs the training; at its end `run/model.safetensors` holds the averaged weights with their record.

        The run folder is opened, or refused, by this call and not by the first step.
        """
        self.decide_precision()
        lock = open_run(self.run, self.config, resume, self.processes.count) if self.processes.leads else nullcontext()
        return self._events(resume, lock)

    def decide_precision(self) -> None:
        """Replaces auto in the record: bf16 where every process computes faster in it."""
        if self.loop.precision == "auto":
            everywhere = all(self.processes.gathered(trains_faster_in_bf16(self.device)))
            loop = replace(self.loop, precision="bf16" if everywhere else "fp32")
            self.config = replace(self.config, loop=loop)

    def _events(self, resume: bool, lock: AbstractContextManager[Any]) -> Iterator[StepDone | EpochDone]:
        with lock:
            yield from self._train(resume)

    def _train(self, resume: bool) -> Iterator[StepDone | EpochDone]:
        started = time.monotonic()
        yield from fit(
            self.network,
            self.batches,
            self.loss,
            self.loop,
            self.run,
            steps_per_epoch=self.steps_per_epoch,
            device=self.device,
            evaluate=self.evaluate if len(self.held_back) else None,
            keep=self._keep,
            resume=resume,
            processes=self.processes,
        )
        if self.processes.leads:
            tensors = self.deployed(self.network).cpu().state_dict()
            save_checkpoint(self.run / MODEL_NAME, tensors, self.meta(time.monotonic() - started))
        self.processes.wait()

    def _keep(self, network: nn.Module, epochs_done: int) -> None:
        """Saves the averaged weights where they are to be kept, as a checkpoint like any other."""
        if epochs_done in snapshot_epochs(self.loop.epochs, self.loop.keep_checkpoints):
            file = snapshot_file(self.run, epochs_done)
            file.parent.mkdir(exist_ok=True)
            tensors = {
                name: tensor.detach().cpu().clone() for name, tensor in self.deployed(network).state_dict().items()
            }
            save_checkpoint(file, tensors, self.meta(0.0))

    def deployed(self, network: nn.Module) -> nn.Module:
        """What is kept of the trained network, or of its average."""
        return network

    def cost(self, epoch: int) -> float:
        """How long a step of this epoch (from 0) takes, over one of the first."""
        return 1.0

    @abstractmethod
    def batches(self, epoch: int) -> Iterator[Batch]:
        """This process's normalised batches of an epoch; a last batch that is not full is left out."""

    @abstractmethod
    def loss(self, logits: Tensor, targets: Tensor) -> tuple[Tensor, Tensor]:
        """(sum of the weighted losses, sum of the weights)."""

    @abstractmethod
    def evaluate(self, network: nn.Module) -> dict[str, float]:
        """Figures of single dropout-free passes on what is held back."""

    @abstractmethod
    def meta(self, seconds: float) -> CheckpointMeta:
        """The record that travels with the weights."""
