"""`steadyseg train`: runs a training, shows its progress and writes its logs: `log.jsonl`, with a line for each event,
and a TensorBoard file."""

import dataclasses
import json
import os
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, TextIO

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
from steadyseg.core.training.run_folder import MODEL_NAME
from steadyseg.seg.presets import PRESETS, with_crops_of_size

Events = Iterator[StepDone | EpochDone]
LOG_NAME = "log.jsonl"


def train_segmenter(job: SegTrainJob) -> int:
    """`steadyseg train seg`."""
    from steadyseg.seg.train import prepare_segmentation

    return run_training(prepare_segmentation, with_crops_of_size(job.config, PRESETS[job.preset]), job)


def train_classifier(job: ClassTrainJob) -> int:
    """`steadyseg train classification`."""
    from steadyseg.classification.networks.layout import drop_unsuited
    from steadyseg.classification.train import prepare_classification

    return run_training(prepare_classification, drop_unsuited(job.config, CLASS_PRESETS[job.preset]), job)


def run_training(
    prepare: Callable[[Config, Run], TrainingParts], config: Config, job: SegTrainJob | ClassTrainJob
) -> int:
    """Trains to the end; Ctrl-C and kills lose at most the epoch under way (--resume goes on).

    With several processes (torchrun) only the first process shows the progress and writes the logs.
    """
    keep_freed_memory()
    with join_processes(job.device) as processes:
        run = Run(job.run, choose_device(job.device), processes, job.resume)
        config = choose_precision(config, run)
        parts = processes.together(lambda: prepare(config, run))
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
    """Shows the progress on stderr, writes the logs, and prints the path of the model."""
    console = Console(stderr=True)
    for line in parts.about:
        console.print(line, soft_wrap=True, highlight=False)
    together = f", {run.processes.count} processes" if run.processes.count > 1 else ""
    console.print(
        f"{parts.images} images, {parts.held_out} held out, {parts.steps_per_epoch} steps an epoch, "
        f"on {run.device.type} in {config.precision}{together}; logs and state in {run.folder}; "
        "an interrupted run goes on with --resume"
    )
    if kept := len(miscomputed(parts.network, run.device)):
        console.print(
            f"{kept} of its convolutions keep the default memory layout: channels last is faster, but oneDNN computes "
            "their gradient wrongly there (strided 1x1, few channels: github.com/uxlfoundation/oneDNN/issues/6035)",
            soft_wrap=True,
        )
    total = config.epochs * parts.steps_per_epoch
    with run_log(run.folder) as log, progress_bar("training", total, console) as show:
        for event in events:
            log.write(event)
            if isinstance(event, StepDone):
                status = f"epoch {event.epoch} loss {event.loss:.4f} {event.samples_per_s:.1f} images/s"
                show(event.step, status=status)
            else:
                console.print(describe(event))
    print(run.folder / MODEL_NAME)


def describe(event: EpochDone) -> str:
    """Describes an epoch in one line."""
    figures = " ".join(f"{name} {value:.4f}" for name, value in event.metrics.items())
    return f"epoch {event.epoch:3d}  loss {event.loss:.4f}  {event.seconds:.0f} s  {figures}".rstrip()


class Board:
    """TensorBoard file of scalars, written in the calling thread.

    torch's SummaryWriter writes in a thread of its own, whose error on a full disk cannot be caught.
    """

    def __init__(self, file: BinaryIO) -> None:
        from tensorboard.compat.proto.event_pb2 import Event
        from tensorboard.compat.proto.summary_pb2 import Summary
        from tensorboard.summary.writer.record_writer import RecordWriter

        self._event, self._summary, self._records = Event, Summary, RecordWriter(file)
        self._records.write(Event(wall_time=time.time(), file_version="brain.Event:2").SerializeToString())

    def add_scalar(self, name: str, value: float, step: int) -> None:
        summary = self._summary(value=[self._summary.Value(tag=name, simple_value=value)])
        self._records.write(self._event(wall_time=time.time(), step=step, summary=summary).SerializeToString())

    def flush(self) -> None:
        self._records.flush()


class RunLog:
    """Writer of events to both files; OSError if the disk is full."""

    def __init__(self, file: TextIO, board: Board) -> None:
        self._file, self._board = file, board
        self._step = 0

    def write(self, event: StepDone | EpochDone) -> None:
        """Writes a step or an epoch; an epoch is on disk when this returns."""
        kind = "step" if isinstance(event, StepDone) else "epoch"
        self._file.write(json.dumps({"event": kind, **dataclasses.asdict(event)}) + "\n")
        if isinstance(event, StepDone):
            self._step = event.step
            self._board.add_scalar("loss", event.loss, event.step)
            self._board.add_scalar("learning_rate", event.learning_rate, event.step)
            self._board.add_scalar("samples_per_s", event.samples_per_s, event.step)
        else:
            self._file.flush()
            for name, value in event.metrics.items():
                self._board.add_scalar(f"held_out/{name}", value, self._step)
            self._board.flush()


@contextmanager
def run_log(run: Path) -> Iterator[RunLog]:
    """Opens the logs in the run folder, and appends to them on resume."""
    board = f"events.out.tfevents.{time.time():010.0f}.{socket.gethostname()}.{os.getpid()}.0"
    log = run / LOG_NAME
    if os.path.lexists(log):  # removes a last line that a full disk cut short
        with open(log, "rb+", opener=no_link) as file:
            file.truncate(file.read().rfind(b"\n") + 1)
    # line buffering: a kill leaves whole lines
    with open(log, "a", buffering=1, opener=no_link) as lines, (run / board).open("wb") as records:
        yield RunLog(lines, Board(records))
