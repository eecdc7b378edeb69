"""Where to compute: what was asked for by name must exist, and auto takes the best there is."""

import torch

from core.errors import InputError


def choose_device(name: str) -> torch.device:
    """auto: CUDA where it is there, else the CPU; a device asked for by name must exist."""
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    if name not in ("cpu", "cuda"):
        raise InputError(f"unknown device {name!r}; choose from auto, cpu, cuda")
    if name == "cuda" and not torch.cuda.is_available():
        raise InputError("device cuda was asked for, but torch finds no CUDA device here; use --device cpu or auto")
    return torch.device(name)
