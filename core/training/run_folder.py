"""A training's folder: its configuration, a lock, and the state to resume from."""

import dataclasses
import json
import os
import platform
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Protocol, TextIO

import torch
from torch import Tensor, nn

from steadyseg.core.errors import InputError, first_line
from steadyseg.core.model.tensor_file import below, read_tensors, write_tensors
from steadyseg.core.options import is_whole
from steadyseg.core.system.files import DISK_ERRORS, lock, no_link, read_small, write_atomic
from steadyseg.core.system.interrupts import TORCHRUN
from steadyseg.core.system.json_text import leaves, parse_json
from steadyseg.core.training.config import TrainConfig

CONFIG_NAME = "config.json"
LOCK_NAME = ".lock"
STATE_NAME = "state.safetensors"
MODEL_NAME = "model.safetensors"


class TrainingConfig(Protocol):
    """The configuration of a training of either kind: a frozen dataclass, whose fields may be dataclasses."""

    __dataclass_fields__: ClassVar[dict[str, Any]]

    @property
    def data(self) -> Path:
        """Path of the data set."""

    @property
    def loop(self) -> TrainConfig:
        """The settings that the training loop reads."""


def config_record(config: TrainingConfig) -> dict[str, Any]:
    """Returns the configuration as JSON values, with only the last part of the data path: the rest names a machine."""
    record = json.loads(json.dumps(dataclasses.asdict(config), default=str))
    record["data"] = Path(config.data).name
    return record


def open_run(run: Path, config: TrainingConfig, resume: bool, processes: int = 1) -> TextIO:
    """Writes the configuration into a new run folder, or checks that a resumed run still has its first configuration.

    The number of processes is part of the configuration, because it multiplies the batch. The returned file holds the
    lock: the folder belongs to this process until the file is closed or the process ends. Under torchrun, --resume may
    also begin a run, because torchrun restarts a lost machine with the same arguments.
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
    """Locks the folder; InputError where another process holds the lock.

    The lock file is never deleted: a third process could lock a new file while the second waits at the old file. Child
    processes do not inherit the lock: data loaders outlive a killed training by up to 5 s (torch's
    MP_STATUS_CHECK_INTERVAL).
    """
    file = os.fdopen(no_link(str(run / LOCK_NAME), os.O_WRONLY | os.O_APPEND | os.O_CREAT), "a")
    if not lock(file, for_children=False):
        file.close()
        raise InputError(f"{run}: another training is at work in it; wait for its end or stop it")
    return file


def _write_or_compare(run: Path, config: TrainingConfig, resume: bool, processes: int) -> None:
    path = run / CONFIG_NAME
    # The whole path of the data: --resume reads it here. A checkpoint's record has its last part alone.
    record = config_record(config) | {"data": str(config.data), "processes": processes}
    if not resume:
        if path.exists():
            raise InputError(f"{run}: already holds a training; go on with --resume or choose another --run folder")
        write_atomic(path, (json.dumps(record, indent=1) + "\n").encode())
        return
    try:
        began = dict(parse_json(read_small(path)))
    except (ValueError, TypeError) as error:
        raise InputError(f"{path}: damaged, so the run cannot be resumed ({error}); start in another folder") from error
    then, now = dict(leaves(began)), dict(leaves(record))
    other_version = sorted(then.keys() ^ now.keys())
    if other_version:
        raise InputError(
            f"{run}: began with another version of this program, whose settings differ in {other_version[0]}; start "
            "in another folder"
        )
    then["data"], now["data"] = (Path(str(one["data"])).name for one in (then, now))  # data may have moved
    different = sorted(key for key in now if now[key] != then[key])
    if different:
        key = different[0]
        name = key.rpartition(".")[2].replace("_", "-")
        raise InputError(
            f"{run}: --resume with other {name} ({then[key]} then, {now[key]} now); give --run and --resume alone. "
            f"{go_on(run)}"
        )


def go_on(run: Path) -> str:
    """A sentence that says how to train the network of a finished run further."""
    path = run / MODEL_NAME
    return f"A new --run goes on from its weights: --init {path}, for a classifier --config init={path}"


def training_record(config: TrainingConfig, seconds: float, device: torch.device, processes: int) -> dict[str, Any]:
    """Returns the record of the training that its checkpoint carries; `seconds` since the last start."""
    on = torch.cuda.get_device_name(device) if device.type == "cuda" else device.type
    return {
        "config": config_record(config),
        "hours_of_last_start": round(seconds / 3600, 2),
        "machine": f"{platform.machine()}, {os.cpu_count()} cores, {on}, torch {torch.__version__}",
        "processes": processes,
    }


@dataclass(frozen=True)
class TrainingState:
    """Network, averaged network, optimizer and gradient scaler, whose tensors are the state.

    All random seeds are derived anew.
    """

    network: nn.Module
    average: nn.Module
    optimizer: torch.optim.Optimizer
    scaler: torch.amp.GradScaler

    def tensors(self) -> dict[str, Tensor]:
        tensors = {f"network.{name}": tensor for name, tensor in self.network.state_dict().items()}
        tensors |= {f"average.{name}": tensor for name, tensor in self.average.state_dict().items()}
        for index, slots in self.optimizer.state_dict()["state"].items():
            tensors |= {f"optimizer.{index}.{name}": torch.as_tensor(value) for name, value in slots.items()}
        tensors |= {f"scaler.{name}": torch.as_tensor(value) for name, value in self.scaler.state_dict().items()}
        return tensors  # a scaler that is off has no state

    def load(self, tensors: dict[str, Tensor]) -> None:
        self.network.load_state_dict(below(tensors, "network."))
        self.average.load_state_dict(below(tensors, "average."))
        slots: dict[int, dict[str, Tensor]] = {}
        weights = [one for group in self.optimizer.param_groups for one in group["params"]]
        for key, value in below(tensors, "optimizer.").items():
            index, name = key.split(".", 1)
            if value.ndim and value.shape != weights[int(index)].shape:
                raise ValueError(f"optimizer.{key} has the shape {list(value.shape)}")
            slots.setdefault(int(index), {})[name] = value
        record = self.optimizer.state_dict()
        self.optimizer.load_state_dict({"state": slots, "param_groups": record["param_groups"]})
        self.scaler.load_state_dict({name: value.item() for name, value in below(tensors, "scaler.").items()})


def save_state(state: TrainingState, run: Path, epochs_done: int, data: str) -> None:
    """Replaces `run/state.safetensors` atomically: after a kill at any moment the old or the new file is there."""
    write_tensors(run / STATE_NAME, state.tensors(), json.dumps({"epochs_done": epochs_done, "data": data}))


def load_state(state: TrainingState, run: Path, epochs: int, data: str) -> int:
    """Fills the state and returns the number of epochs done, out of `epochs`; 0 before the end of the first epoch.

    InputError where the digest of the data is another than the state's: images may have moved to or from the held-out
    images. A state of an earlier version has no digest.
    """
    path = run / STATE_NAME
    for leftover in run.glob(".*.safetensors.*"):  # half written when an earlier process was killed: state or model
        leftover.unlink(missing_ok=True)
    if not path.exists():
        return 0
    tensors, header = read_tensors(path)
    epochs_done = _epochs_done(header, path, epochs)
    if parse_json(header).get("data", data) != data:
        raise InputError(
            f"{run}: its images or labels have changed since it began; resume with the data of then, or start in "
            "another folder"
        )
    try:
        state.load(tensors)
    except (IndexError, KeyError, ValueError, RuntimeError) as error:
        raise InputError(
            f"{path}: does not fit this training ({first_line(error)}); resume with the flags it began with"
        ) from error
    return epochs_done


def _epochs_done(header: str, path: Path, epochs: int) -> int:
    """Reads the number of epochs done, 1 to `epochs`: no state is saved before the first epoch ends."""
    try:
        done: int = parse_json(header)["epochs_done"]
    except (KeyError, TypeError, ValueError):
        done = 0
    if not is_whole(done, 1, epochs):
        raise InputError(
            f"{path}: its header is {header[:40]!r}, expected 1 to {epochs} epochs done; start in another folder"
        )
    return done
