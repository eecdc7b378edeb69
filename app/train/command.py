"""`steadyseg train`: runs a training, shows its progress and writes its logs."""

import time
from collections.abc import Callable, Iterator, Sized
from functools import partial
from pathlib import Path
from typing import Protocol

import torch
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from torch import nn

from app.train.flags import ClassTrainJob, SegTrainJob
from app.train.log import run_log
from classification.options import CLASS_PRESETS
from core.errors import CheckFailed
from core.system.allocator import keep_freed_memory
from core.training.config import TrainConfig
from core.training.distributed import Processes, join_processes
from core.training.layout import miscomputed
from core.training.loop import EpochDone, StepDone
from core.training.run_folder import MODEL_NAME

Events = Iterator[StepDone | EpochDone]


class Trainer(Protocol):
    """A training made ready."""

    @property
    def network(self) -> nn.Module: ...
    @property
    def images(self) -> Sized: ...
    @property
    def held_back(self) -> Sized: ...
    @property
    def steps_per_epoch(self) -> int: ...
    @property
    def total_steps(self) -> int: ...
    @property
    def device(self) -> torch.device: ...
    @property
    def loop(self) -> TrainConfig: ...

    def cost(self, epoch: int) -> float: ...
    def events(self, resume: bool = False) -> Events: ...


def train_segmenter(job: SegTrainJob) -> int:
    """`steadyseg train seg`."""
    from seg.train import Training

    return run_training(partial(Training, job.config, job.run), job.run, resume=job.resume, device=job.device)


def train_classifier(job: ClassTrainJob) -> int:
    """`steadyseg train classification`."""
    from classification.networks.layout import drop_unsuited
    from classification.train import ClassTraining

    config = drop_unsuited(job.config, CLASS_PRESETS[job.preset])
    return run_training(partial(ClassTraining, config, job.run), job.run, resume=job.resume, device=job.device)


def run_training(prepare: Callable[[str, Processes], Trainer], run: Path, *, resume: bool, device: str) -> int:
    """Trains to the end; Ctrl-C and kills lose at most the epoch under way (--resume goes on).

    `prepare(device, processes)` opens everything. Of several processes (torchrun) the first one alone shows and logs.
    """
    keep_freed_memory()
    with join_processes(device) as processes:
        training = processes.together(lambda: prepare(device, processes))
        events = processes.together(lambda: training.events(resume))
        if processes.leads:
            follow(training, events, run, processes)
        else:
            keep_pace(events)
    return 0


def keep_pace(events: Events) -> None:
    """What the other processes do; that a loss is no number is said by the first one."""
    try:
        for _ in events:
            pass
    except CheckFailed:
        raise SystemExit(1) from None


def follow(training: Trainer, events: Events, run: Path, processes: Processes) -> None:
    """Shows the progress on stderr, writes the logs, and prints where the model is."""
    console = Console(stderr=True)
    together = f", {processes.count} processes" if processes.count > 1 else ""
    console.print(
        f"{len(training.images)} images, {len(training.held_back)} held back, {training.steps_per_epoch} "
        f"steps an epoch, "
        f"on {training.device.type} in {training.loop.precision}{together}; logs and state in {run}"
    )
    if kept := len(miscomputed(training.network, training.device)):
        console.print(
            f"{kept} of its convolutions keep the default memory layout: channels last is faster, but oneDNN "
            f"computes their "
            "gradient wrongly there (strided 1x1, few channels: github.com/uxlfoundation/oneDNN/issues/6035)",
            soft_wrap=True,
        )
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[status]}"),
        TimeElapsedColumn(),
        TextColumn("ETA"),
        TimeRemainingColumn(),
    )
    with run_log(run) as log, Progress(*columns, console=console, speed_estimate_period=600) as progress:
        task = progress.add_task("training", total=training.total_steps, status="")
        pace = TimeEstimate(training.loop.epochs, training.cost)
        for event in events:
            log.write(event)
            if isinstance(event, StepDone):
                if estimate := pace.after(event, time.monotonic()):
                    console.print(estimate)
                status = f"epoch {event.epoch} loss {event.loss:.4f} {event.samples_per_s:.1f} images/s"
                progress.update(task, completed=event.step, status=status)
            else:
                console.print(describe(event))
    print(run / MODEL_NAME)


class TimeEstimate:
    """Tells after the first steps how long the training will take: the first ones are slow, and an epoch may take
    long."""

    FROM, TO = 3, 13
    """Steps of this start between which is timed."""

    def __init__(self, epochs: int, cost: Callable[[int], float] = lambda epoch: 1.0) -> None:
        """cost: of a step of each epoch, from 0."""
        self._epochs, self._cost, self._seen, self._began = epochs, cost, 0, 0.0

    def after(self, step: StepDone, now_s: float) -> str:
        """One line after step TO, else empty."""
        self._seen += 1
        if self._seen == self.FROM:
            self._began = now_s
        if self._seen != self.TO:
            return ""
        a_step_s, of_epoch = (now_s - self._began) / (self.TO - self.FROM), step.total_steps / self._epochs
        now = self._cost(step.epoch - 1)
        later = of_epoch * sum(self._cost(epoch) for epoch in range(step.epoch, self._epochs))
        hours = a_step_s * (of_epoch * step.epoch - step.step + later / now) / 3600
        shown = f"{hours:.1f} hours" if hours >= 1 else f"{60 * hours:.0f} minutes"
        return (
            f"about {shown} to the end of {self._epochs} epochs at this pace; an interrupted run goes on with --resume"
        )


def describe(event: EpochDone) -> str:
    """One line an epoch."""
    figures = " ".join(f"{name} {value:.4f}" for name, value in event.metrics.items())
    return f"epoch {event.epoch:3d}  loss {event.loss:.4f}  {event.seconds:.0f} s  {figures}".rstrip()
