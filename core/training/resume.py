"""The training state on disk: weights, averaged weights and optimiser in one safetensors file, replaced atomically."""

import json
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor, nn

from core.errors import InputError
from core.model.checkpoint import read_tensors, write_tensors
from core.system.json_text import parse_json

STATE_NAME = "state.safetensors"


@dataclass(frozen=True)
class TrainingState:
    """The three objects whose tensors are the state; random generators are not part of it (all seeds are derived)."""

    network: nn.Module
    average: nn.Module
    optimizer: torch.optim.Optimizer

    def tensors(self) -> dict[str, Tensor]:
        found = {f"network.{name}": tensor for name, tensor in self.network.state_dict().items()}
        found |= {f"average.{name}": tensor for name, tensor in self.average.state_dict().items()}
        for index, slots in self.optimizer.state_dict()["state"].items():
            found |= {f"optimizer.{index}.{name}": torch.as_tensor(value) for name, value in slots.items()}
        return found

    def load(self, tensors: dict[str, Tensor]) -> None:
        self.network.load_state_dict(_below(tensors, "network."))
        self.average.load_state_dict(_below(tensors, "average."))
        slots: dict[int, dict[str, Tensor]] = {}
        for key, value in _below(tensors, "optimizer.").items():
            index, name = key.split(".", 1)
            slots.setdefault(int(index), {})[name] = value
        record = self.optimizer.state_dict()
        self.optimizer.load_state_dict({"state": slots, "param_groups": record["param_groups"]})


def save_state(state: TrainingState, run: Path, epochs_done: int) -> None:
    """Replaces `run/state.safetensors`; killed at any moment, the old or the new one is there, whole."""
    write_tensors(run / STATE_NAME, state.tensors(), json.dumps({"epochs_done": epochs_done}))


def load_state(state: TrainingState, run: Path, epochs: int) -> int:
    """Fills the objects and returns the number of whole epochs done, of `epochs`; 0 where none was finished yet."""
    path = run / STATE_NAME
    for leftover in run.glob(".*.safetensors.*"):  # half written when an earlier process was killed: state or model
        leftover.unlink(missing_ok=True)
    if not path.exists():
        return 0
    tensors, header = read_tensors(path)
    epochs_done = _epochs_done(header, path, epochs)
    try:
        state.load(tensors)
    except (KeyError, ValueError, RuntimeError) as error:
        first = str(error).splitlines()[0]
        raise InputError(
            f"{path}: does not fit this training ({first}); resume with the flags it began with"
        ) from error
    return epochs_done


def _epochs_done(header: str, path: Path, most: int) -> int:
    """1 to `most`: nothing is saved before the first one is done."""
    try:
        record = parse_json(header)
    except ValueError:
        record = None
    done = record.get("epochs_done") if isinstance(record, dict) else None
    if not isinstance(done, int) or isinstance(done, bool) or not 1 <= done <= most:
        raise InputError(
            f"{path}: its header is {header[:40]!r}, expected 1 to {most} epochs done; start in another folder"
        )
    return done


def _below(tensors: dict[str, Tensor], prefix: str) -> dict[str, Tensor]:
    return {name.removeprefix(prefix): tensor for name, tensor in tensors.items() if name.startswith(prefix)}
