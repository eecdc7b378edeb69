"""`steadyseg train`: runs a training, shows its progress and writes its log: a line for each event."""

import dataclasses
import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TextIO

from steadyseg.app.console import Console, progress_bar
from steadyseg.app.train.flags import ClassTrainJob, SegTrainJob
from steadyseg.classification.options import CLASS_PRESETS
from steadyseg.core.errors import CheckFailed
from steadyseg.core.system.files import no_link
from steadyseg.core.system.machine import choose_device, keep_freed_memory
from steadyseg.core.training.config import TrainConfig
from steadyseg.core.training.distributed import join_processes
from steadyseg.core.training.layout import miscomputed
from steadyseg.core.training.loop import EpochDone, StepDone
from steadyseg.core.training.parts import Run, TrainingParts
from steadyseg.core.training.run import Config, choose_precision, train
from steadyseg.core.training.run_folder import MODEL_NAME, go_on
from steadyseg.seg.presets import PRESETS, with_crops_of_size, without_conflicts

Events = Iterator[StepDone | EpochDone]
LOG_NAME = "log.jsonl"


def train_segmenter(job: SegTrainJob) -> int:
    """`steadyseg train seg`."""
    from steadyseg.seg.train import prepare_segmentation

    preset = PRESETS[job.preset]
    config, lowered = without_conflicts(with_crops_of_size(job.config, preset), preset)
    return run_training(prepare_segmentation, config, preset.loop, job, lowered)


def train_classifier(job: ClassTrainJob) -> int:
    """`steadyseg train classification`."""
    from steadyseg.classification.networks.layout import drop_unsuited
    from steadyseg.classification.train import prepare_classification

    preset = CLASS_PRESETS[job.preset]
    return run_training(prepare_classification, drop_unsuited(job.config, preset), preset.loop, job)


def run_training(
    prepare: Callable[[Config, Run], TrainingParts],
    config: Config,
    preset: TrainConfig,
    job: SegTrainJob | ClassTrainJob,
    lowered: tuple[str, ...] = (),
) -> int:
    """Trains to the end; Ctrl-C and kills lose at most the epoch under way (--resume goes on).

    With several processes (torchrun) only the first process shows the progress and writes the log. A batch size that
    differs from the preset's was named by the user. `lowered`: remarks on settings that were lowered.
    """
    keep_freed_memory()
    with join_processes(job.device) as processes:
        fits_batch = job.resume or config.loop.batch_size == preset.batch_size
        run = Run(job.run, choose_device(job.device), processes, job.resume, fits_batch)
        config = choose_precision(config, run)
        parts = processes.together(lambda: prepare(config, run))
        parts = dataclasses.replace(parts, about=(*lowered, *parts.about))
        events = processes.together(lambda: train(parts, config, run))
        if processes.is_main:
            follow(parts, config.loop, run, events)
        else:
            run_silently(events)
    return 0


def run_silently(events: Events) -> None:
    """Runs the training in a process that prints nothing; the first process reports a failure."""
    try:
        for _ in events:
            pass
    except CheckFailed:
        raise SystemExit(1) from None


def follow(parts: TrainingParts, config: TrainConfig, run: Run, events: Events) -> None:
    """Shows the progress on stderr, writes the log, and prints the path of the model."""
    console = Console(stderr=True)
    for line in parts.about:
        console.print(line, soft_wrap=True, highlight=False)
    together = f", {run.processes.count} processes" if run.processes.count > 1 else ""
    console.print(
        f"{parts.images} images, {parts.held_out} held out, {parts.steps_per_epoch} steps an epoch, "
        f"on {run.device.type} in {config.precision}{together}; log and state in {run.folder}; "
        "an interrupted run goes on with --resume"
    )
    if kept := len(miscomputed(parts.network, run.device)):
        console.print(
            f"{kept} of its convolutions keep the default memory layout: channels last is faster, but oneDNN computes "
            "their gradient wrongly there (strided 1x1, few channels: github.com/uxlfoundation/oneDNN/issues/6035)",
            soft_wrap=True,
        )
    total = config.epochs * parts.steps_per_epoch
    event = None
    with run_log(run.folder) as log, progress_bar("training", total, console) as show:
        for event in events:
            write_event(log, event)
            if isinstance(event, StepDone):
                status = f"epoch {event.epoch} loss {event.loss:.4f} {event.samples_per_s:.1f} images/s"
                show(event.step, status=status)
            else:
                console.print(describe(event))
    if event is None:
        done = f"this run was finished before (epochs: {config.epochs}), so nothing was trained"
        console.print(f"{done}. {go_on(run.folder)}", soft_wrap=True)
    print(run.folder / MODEL_NAME)


def describe(event: EpochDone) -> str:
    """Describes an epoch in one line."""
    figures = " ".join(f"{name} {value:.4f}" for name, value in event.metrics.items())
    return f"epoch {event.epoch:3d}  loss {event.loss:.4f}  {event.seconds:.0f} s  {figures}".rstrip()


def write_event(log: TextIO, event: StepDone | EpochDone) -> None:
    """Writes a step or an epoch as a line; OSError if the disk is full."""
    kind = "step" if isinstance(event, StepDone) else "epoch"
    log.write(json.dumps({"event": kind, **dataclasses.asdict(event)}) + "\n")


def run_log(run: Path) -> TextIO:
    """Opens the log in the run folder, and appends to it on resume. A kill leaves whole lines."""
    path = run / LOG_NAME
    if os.path.lexists(path):  # removes a last line that a full disk cut short
        with open(path, "rb+", opener=no_link) as file:
            file.truncate(file.read().rfind(b"\n") + 1)
    return open(path, "a", buffering=1, opener=no_link)
