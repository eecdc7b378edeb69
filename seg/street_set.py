"""The procedural street as an indexed labelled data set: short looks into many different streets."""

import numpy as np

from core.errors import InputError


class StreetSet:
    """`count` labelled pictures, each from another place of another street; the same for the same arguments."""

    def __init__(self, count: int = 1200, height: int = 180, width: int = 240, first_seed: int = 1000) -> None:
        if count < 1:
            raise InputError(f"a street set needs one picture or more, got {count}")
        self.count, self.height, self.width, self.first_seed = count, height, width, first_seed

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, index: int) -> tuple[np.ndarray, np.ndarray]:
        """(H, W, 3) uint8 image and (H, W) uint8 label of picture `index`."""
        from seg.street import Street

        street = Street(seed=self.first_seed + index, height=self.height, width=self.width)
        frame = street.frame(7 * (index % 50) + 1)
        assert frame.label is not None
        return frame.image, frame.label
