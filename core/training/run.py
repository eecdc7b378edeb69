"""A whole training: it opens the run folder, runs the loop and saves the model with its record."""

import time
from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import replace
from typing import TypeVar

from steadyseg.core.model.checkpoint import save_checkpoint
from steadyseg.core.system.machine import training_precision
from steadyseg.core.training.loop import EpochDone, StepDone, fit
from steadyseg.core.training.parts import Run, TrainingParts
from steadyseg.core.training.run_folder import MODEL_NAME, TrainingConfig, open_run

Config = TypeVar("Config", bound=TrainingConfig)


def choose_precision(config: Config, run: Run) -> Config:
    """Returns the configuration with precision auto replaced: the format that is fastest everywhere, else fp32."""
    if config.loop.precision != "auto":
        return config
    fastest = set(run.processes.all_gather(training_precision(run.device)))
    return replace(config, loop=replace(config.loop, precision=fastest.pop() if len(fastest) == 1 else "fp32"))


def train(parts: TrainingParts, config: TrainingConfig, run: Run) -> Iterator[StepDone | EpochDone]:
    """Runs the training; at its end `model.safetensors` in the run folder holds the averaged weights with their record.

    This call, and not the first step, opens the run folder or refuses it. `config` is stored there, and a resumed run
    must have the same `config`.
    """
    lock = open_run(run.folder, config, run.resume, run.processes.count) if run.processes.is_main else nullcontext()

    def events() -> Iterator[StepDone | EpochDone]:
        with lock:
            started = time.monotonic()
            trained = False
            for event in fit(parts, config.loop, run):
                trained = True
                yield event
            if run.processes.is_main and (trained or not (run.folder / MODEL_NAME).exists()):
                tensors = parts.deployed(parts.network).cpu().state_dict()
                save_checkpoint(run.folder / MODEL_NAME, tensors, parts.describe(time.monotonic() - started))
            run.processes.wait()

    return events()
