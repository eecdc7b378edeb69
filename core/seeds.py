"""Seeds of all random numbers, derived from a few numbers in the same way on every machine."""

import random


def mix_seed(*parts: int) -> int:
    """One 63-bit seed from several numbers, the same on every machine."""
    return random.Random(",".join(map(str, parts))).getrandbits(63)  # str seeds go through SHA-512
