"""The procedural street as an indexed labelled data set: a few frames of each of many streets."""

import numpy as np

from core.errors import InputError
from seg.street.drive import Street

LOOKS = 12
"""Pictures from one street: making a street takes longer (0.2 s) than looking at it (0.04 s)."""
HELD_OUT = 20
"""The last of every 20 streets is held out."""
STEP_FRAMES = 40
"""Frames between two looks, at 25 frames/s: by then most of the picture is new."""


class StreetSet:
    """`count` labelled pictures from count / 12 streets; equal arguments give equal pictures."""

    def __init__(self, count: int = 1200, height: int = 180, width: int = 240, first_seed: int = 1000) -> None:
        if count < 1:
            raise InputError(f"a street set needs one picture or more, got {count}")
        self.count, self.height, self.width, self.first_seed = count, height, width, first_seed

    def __len__(self) -> int:
        return self.count

    def held_out(self) -> tuple[int, ...]:
        """Returns the indices of the pictures of every twentieth street."""
        return tuple(index for index in range(self.count) if index // LOOKS % HELD_OUT == HELD_OUT - 1)

    def __getitem__(self, index: int) -> tuple[np.ndarray, np.ndarray]:
        """(H, W, 3) uint8 image and (H, W) uint8 label of picture `index`."""
        street = Street(seed=self.first_seed + index // LOOKS, height=self.height, width=self.width)
        frame = street.frame(STEP_FRAMES * (index % LOOKS) + 1)
        assert frame.label is not None
        return frame.image, frame.label
