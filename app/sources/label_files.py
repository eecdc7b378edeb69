"""True labels of a video: a folder of PNGs named like the frames; frames without one have no label."""

import re
from collections import Counter
from pathlib import Path

import numpy as np

from core.classes import ClassList
from core.errors import InputError


class LabelFolder:
    """8-bit grey or palette PNGs of class ids, found by base name."""

    def __init__(self, folder: Path, classes: ClassList) -> None:
        if not folder.is_dir():
            raise InputError(f"{folder}: no such folder of labels; expected PNGs named like the frames (000123.png)")
        self._folder = folder
        self._classes = classes
        self._paths = {path.stem: path for path in folder.iterdir() if path.suffix.lower() == ".png"}

    def check_names(self, names: set[str] | None) -> None:
        """Raises InputError if no label can match: `names` of the frames, or None for numbered frames."""
        matching = self._paths.keys() & names if names is not None else filter(_is_number, self._paths)
        if not any(True for _ in matching):
            example = min(names) if names else "000123"
            raise InputError(f"{self._folder}: no label is named like a frame; expected names such as {example}.png")

    def find(self, name: str, shape: tuple[int, ...], losses: Counter[str]) -> np.ndarray | None:
        """(H, W) uint8 ids of the frame with that name, or None, which is counted. Raises InputError for another
        size."""
        path = self._paths.get(name)
        if path is None:
            losses["missing_label"] += 1
            return None
        from seg.data.camvid import read_label

        label = read_label(path, self._classes)
        if label.shape != shape:
            raise InputError(f"{path}: the label is {_size(label.shape)}, its frame {_size(shape)}; they must be equal")
        return label


def _is_number(name: str) -> bool:
    return re.fullmatch(r"\d{6}", name) is not None


def _size(shape: tuple[int, ...]) -> str:
    return f"{shape[1]}x{shape[0]}"
