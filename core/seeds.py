"""Seeds of all random numbers, derived from a few numbers in the same way on every machine."""

import random
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import torch


def mix_seed(*parts: int) -> int:
    """One 63-bit seed from several numbers, the same on every machine."""
    return random.Random(",".join(map(str, parts))).getrandbits(63)  # str seeds go through SHA-512


@contextmanager
def keep_generators() -> Iterator[None]:
    """A context that restores the global generators, from which libraries draw, at its end."""
    states = random.getstate(), np.random.get_state(), torch.default_generator.get_state()
    try:
        yield
    finally:
        random.setstate(states[0])
        np.random.set_state(states[1])
        torch.default_generator.set_state(states[2])
