"""Logs of a training: `log.jsonl`, with a line for each event, and a TensorBoard file."""

import dataclasses
import json
import os
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, TextIO

from core.training.loop import EpochDone, StepDone

LOG_NAME = "log.jsonl"


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
    """Writer of events to both files; OSError where the disk is full."""

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
    _drop_half_line(run / LOG_NAME)
    # line buffering: a kill leaves whole lines
    with (run / LOG_NAME).open("a", buffering=1) as lines, (run / board).open("wb") as records:
        yield RunLog(lines, Board(records))


def _drop_half_line(log: Path) -> None:
    """Removes a last line that a full disk cut short."""
    if log.exists():
        with log.open("rb+") as file:
            file.truncate(file.read().rfind(b"\n") + 1)
