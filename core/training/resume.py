"""The training state on disk: weights, averaged weights and optimiser in one safetensors file, replaced atomically."""

import json
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor, nn

from core.checkpoint import read_tensors, write_tensors
from core.errors import InputError

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


def load_state(state: TrainingState, run: Path) -> int:
    """Fills the objects and returns the number of whole epochs done; 0 where no epoch was finished yet."""
    path = run / STATE_NAME
    for leftover in run.glob(".*.safetensors.*"):  # half written when an earlier process was killed: state or model
        leftover.unlink(missing_ok=True)
    if not path.exists():
        return 0
    tensors, header = read_tensors(path)
    try:
        state.load(tensors)
        return int(json.loads(header)["epochs_done"])
    except (KeyError, ValueError, RuntimeError) as error:
        first = str(error).splitlines()[0]
        raise InputError(
            f"{path}: does not fit this training ({first}); resume with the flags it began with"
        ) from error


def _below(tensors: dict[str, Tensor], prefix: str) -> dict[str, Tensor]:
    return {name.removeprefix(prefix): tensor for name, tensor in tensors.items() if name.startswith(prefix)}
