"""The proof that a classifier's graph computes what torch computes, on batches of several sizes."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np

from core.errors import CheckFailed
from export.run.sessions import Arrays, Runner
from export.write.proof import TOLERANCE


@dataclass(frozen=True)
class PictureProof:
    """What was compared and how far apart it was."""

    pictures: int
    largest_difference: float
    """Of a probability, or of an uncertainty as a share of ln K."""

    def __str__(self) -> str:
        return (
            f"{self.pictures} pictures in batches of several sizes: probabilities and uncertainties at most "
            f"{self.largest_difference:.1e} apart"
        )


def prove_pictures(
    expected: Callable[[Arrays], Arrays], run: Runner, batches: Iterable[Arrays], where: str
) -> PictureProof:
    """Runs both on every batch (`image` (B, s, s, 3) uint8 and the masks); CheckFailed where an output parts."""
    pictures, apart = 0, 0.0
    for batch in batches:
        ours, theirs = expected(batch), run(batch)
        pictures += len(batch["image"])
        for name, values in ours.items():
            if theirs[name].shape != values.shape:
                raise CheckFailed(
                    f"{where} gives {name} of shape {theirs[name].shape}, torch {values.shape}; no file was written"
                )
            difference = float(np.abs(theirs[name] - values).max())
            apart = max(apart, difference if np.isfinite(difference) else np.inf)
    proof = PictureProof(pictures, apart)
    if not apart <= TOLERANCE:
        raise CheckFailed(f"the graph does not compute in {where} what torch computes, so no file was written: {proof}")
    return proof
