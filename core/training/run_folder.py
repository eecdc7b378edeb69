"""A training's folder: it keeps the configuration that the run began with, and a resumed run must have the same."""

import dataclasses
import json
import os
import platform
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Protocol, TextIO

import torch

from core.errors import InputError
from core.system.file_lock import lock
from core.system.files import DISK_ERRORS, write_atomic
from core.system.interrupts import TORCHRUN
from core.system.json_text import parse_json

CONFIG_NAME = "config.json"
LOCK_NAME = ".lock"
MODEL_NAME = "model.safetensors"


class TrainingConfig(Protocol):
    """A frozen dataclass with a default for every field, and nested ones in it; `data` is where the pictures are."""

    @property
    def data(self) -> Path: ...


def config_record(config: TrainingConfig) -> dict[str, Any]:
    """The configuration as JSON values. Of the data path only the last part is kept: the rest names a machine."""
    record = json.loads(json.dumps(dataclasses.asdict(config), default=str))  # type: ignore[call-overload]
    record["data"] = Path(config.data).name
    return record


def open_run(run: Path, config: TrainingConfig, resume: bool, processes: int = 1) -> TextIO:
    """Writes the configuration into a new run folder, or sees that a resumed run has the one it began with.

    A setting that the run began without, because there was none yet, counts as its default. The number of processes
    belongs to it: it multiplies the batch. The folder is this process's until what is returned is closed, or the
    process ends. Under torchrun --resume may also begin a run: what it starts again, after a machine was lost, it
    starts by the same words.
    """
    path = run / CONFIG_NAME
    resume = resume and (path.exists() or TORCHRUN not in os.environ)
    if resume and not path.exists():
        raise InputError(f"{run}: holds no training to resume; start it without --resume")
    try:
        run.mkdir(parents=True, exist_ok=True)
        held = _lock(run)
        try:
            _write_or_compare(run, config, resume, processes)
        except BaseException:
            held.close()
            raise
    except OSError as error:
        if error.errno in DISK_ERRORS:
            raise
        raise InputError(f"{run}: cannot hold a training ({error.strerror}); choose another --run folder") from error
    return held


def _lock(run: Path) -> TextIO:
    """InputError where another process has it. The file stays: to delete it would let two in.

    Not for children: what loads the data outlives a killed training by up to 5 s (torch's MP_STATUS_CHECK_INTERVAL).
    """
    file = (run / LOCK_NAME).open("a")
    if not lock(file, for_children=False):
        file.close()
        raise InputError(f"{run}: another training is at work in it; wait for its end or stop it")
    return file


def _write_or_compare(run: Path, config: TrainingConfig, resume: bool, processes: int) -> None:
    record, path = config_record(config) | {"processes": processes}, run / CONFIG_NAME
    if not resume:
        if path.exists():
            raise InputError(f"{run}: already holds a training; go on with --resume or choose another --run folder")
        write_atomic(path, (json.dumps(record, indent=1) + "\n").encode())
        return
    try:
        began = dict(parse_json(path.read_bytes()))
    except (ValueError, TypeError) as error:
        raise InputError(f"{path}: damaged, so the run cannot be resumed ({error}); start in another folder") from error
    defaults = dict(_leaves(config_record(type(config)()) | {"processes": 1}))
    then, now = defaults | dict(_leaves(began)), dict(_leaves(record))
    gone = sorted(then.keys() - now.keys())
    if gone:
        raise InputError(f"{run}: began with {gone[0]} = {then[gone[0]]}, which this version does not know; start anew")
    different = sorted(key for key in now if now[key] != then[key])
    if different:
        key = different[0]
        flag = key.rpartition(".")[2].replace("_", "-")
        raise InputError(
            f"{run}: --resume with other {flag} ({then[key]} then, {now[key]} now); use the flags it began with"
        )


def training_record(config: TrainingConfig, seconds: float, device: torch.device, processes: int) -> dict[str, Any]:
    """What a checkpoint keeps of the training it comes from."""
    return {
        "config": config_record(config),
        "hours_of_last_start": round(seconds / 3600, 2),
        "machine": f"{platform.machine()}, {os.cpu_count()} cores, {device.type}, torch {torch.__version__}",
        "processes": processes,
    }


def _leaves(record: dict[str, Any], inside: str = "") -> Iterator[tuple[str, Any]]:
    """('loop.epochs', 60), ...: the settings by their dotted names."""
    for name, value in record.items():
        if isinstance(value, dict):
            yield from _leaves(value, f"{inside}{name}.")
        else:
            yield f"{inside}{name}", value
