"""Pictures of noise and labels for them, alone and as data folders."""

from pathlib import Path

import numpy as np
from PIL import Image


def picture(seed: int, height: int = 12, width: int = 16) -> np.ndarray:
    """(H, W, 3) uint8."""
    return np.random.default_rng(seed).integers(0, 256, (height, width, 3), dtype=np.uint8)


def labels(seed: int, height: int = 12, width: int = 16, classes: int = 12) -> np.ndarray:
    """(H, W) uint8; of CamVid's classes and void unless told otherwise."""
    return np.random.default_rng(seed).integers(0, classes, (height, width), dtype=np.uint8)


def labelled_folder(
    root: Path,
    count: int,
    label: int | None = None,
    splits: tuple[str, ...] = ("test", "val"),
    size: tuple[int, int] = (48, 64),
) -> Path:
    """A data set in CamVid's layout, every pixel with this label, or with a random one."""
    for split in splits:
        for folder in (split, f"{split}annot"):
            (root / folder).mkdir(parents=True)
        for i in range(count):
            ids = labels(i, *size, 11) if label is None else np.full(size, label, np.uint8)
            Image.fromarray(picture(i, *size)).save(root / split / f"{i}.png")
            Image.fromarray(ids).save(root / f"{split}annot" / f"{i}.png")
    return root
