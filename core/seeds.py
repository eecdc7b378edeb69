"""Seeds of all random numbers, derived from a few numbers in the same way on every machine; torch is not imported."""

import random
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

_kept: dict[str, int] = {}


def mix_seed(*parts: int) -> int:
    """One 63-bit seed from several numbers, the same on every machine."""
    return random.Random(",".join(map(str, parts))).getrandbits(63)  # str seeds go through SHA-512


def seed_masks(seed: int) -> None:
    """Seeds the dropout masks, which torch's generator draws. Until torch is loaded, `carry_seed` keeps the seed."""
    torch = sys.modules.get("torch")
    if torch is None:
        _kept["masks"] = seed
    else:
        torch.manual_seed(seed)


def carry_seed() -> None:
    """Gives torch the seed that was set before torch was loaded. Called before torch draws masks."""
    import torch

    if "masks" in _kept:
        torch.manual_seed(_kept.pop("masks"))


def masks_seed() -> int:
    """Returns the seed of the dropout masks that are inputs of an OpenVINO network."""
    torch = sys.modules.get("torch")
    return _kept.get("masks", 0) if torch is None or "masks" in _kept else int(torch.initial_seed())


@contextmanager
def keep_generators() -> Iterator[None]:
    """A context that restores the global generators, from which libraries draw, at its end."""
    torch = sys.modules.get("torch")
    states = random.getstate(), np.random.get_state(), torch and torch.default_generator.get_state()
    try:
        yield
    finally:
        random.setstate(states[0])
        np.random.set_state(states[1])
        if torch is not None:
            torch.default_generator.set_state(states[2])
