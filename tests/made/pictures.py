"""Pictures of noise and of the street and labels for them, alone and as data folders."""

from collections.abc import Iterable, Mapping
from pathlib import Path

import numpy as np
from made.shared import made_once
from PIL import Image

from steadyseg.street.drive import StreetSet


def picture(seed: int, height: int = 12, width: int = 16) -> np.ndarray:
    """(H, W, 3) uint8 noise; three quarters are in every picture of a size, so that two are frames of one scene."""
    scene = np.random.default_rng(2**32).integers(0, 193, (height, width, 3))
    own = np.random.default_rng(seed).integers(0, 64, (height, width, 3))
    return (scene + own).astype(np.uint8)


def labels(seed: int, height: int = 12, width: int = 16, classes: int = 12) -> np.ndarray:
    """(H, W) uint8; of CamVid's classes and void unless told otherwise."""
    return np.random.default_rng(seed).integers(0, classes, (height, width), dtype=np.uint8)


def save_split(root: Path, split: str, pairs: Iterable[tuple[str, np.ndarray, np.ndarray]]) -> None:
    """In CamVid's layout: (name, (H, W, 3), (H, W)) uint8 each."""
    pictures, annotations = root / split, root / f"{split}annot"
    for folder in (pictures, annotations):
        folder.mkdir(parents=True)
    for name, image, label in pairs:
        Image.fromarray(image).save(pictures / f"{name}.png")
        Image.fromarray(label).save(annotations / f"{name}.png")


def street_folder(root: Path, splits: Mapping[str, Iterable[int]], size: tuple[int, int]) -> Path:
    """One recording of the street; which of its pictures a split has."""
    for split, numbers in splits.items():
        street = StreetSet(max(numbers) + 1, *size)
        save_split(root, split, ((f"a_{number:03}", *street[number]) for number in numbers))
    return root


def street_drive(size: tuple[int, int]) -> Path:
    """A drive of 60 pictures to fit familiarity on; val and test have two of them. Not to be written to."""
    splits = {"train": range(60), "val": range(2), "test": range(2)}
    return made_once(f"drive-{size[0]}x{size[1]}", lambda root: street_folder(root, splits, size))


def labelled_folder(
    root: Path,
    count: int,
    label: int | None = None,
    splits: tuple[str, ...] = ("test", "val"),
    size: tuple[int, int] = (48, 64),
) -> Path:
    """A data set in CamVid's layout, every pixel with this label, or with a random one."""
    ids = [labels(i, *size, 11) if label is None else np.full(size, label, np.uint8) for i in range(count)]
    for split in splits:
        save_split(root, split, ((str(i), picture(i, *size), ids[i]) for i in range(count)))
    return root
