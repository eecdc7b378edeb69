"""Stored choices inside the sets of coarse labels: `SPLITwithin/NAME.png`, written by `seg.within`."""

from pathlib import Path

import numpy as np

from steadyseg.seg.data.camvid_original import read_label_file
from steadyseg.seg.data.label_folder import ImageFolderSplit

LEAST_SHARE = 0.7
"""Smaller shares of the teacher's class teach nothing."""


def choice_file(split: ImageFolderSplit, index: int) -> Path:
    """Returns the file of a picture's choices."""
    return split.root / f"{split.split}within" / f"{split.examples[index].name}.png"


def read_choice(split: ImageFolderSplit, index: int) -> np.ndarray | None:
    """Reads (H, W, 2) uint8: the chosen class, and 255 times its share of the set's probability; None without a
    file."""
    path = choice_file(split, index)
    return (
        read_label_file(path, ("LA",), "a PNG of two channels, as `data within` writes it") if path.exists() else None
    )
