"""Image folders such as ImageNet: `train/CLASS/*.jpg` and `val/` or `test/`, read from disk picture by picture."""

import hashlib
import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import numpy as np
from PIL import Image

from core.classes import ClassList
from core.errors import InputError
from core.system.pictures import look_at, to_rgb

SPLITS = ("train", "val", "test")
SUFFIXES = (".jpg", ".jpeg", ".png", ".ppm", ".bmp", ".pgm", ".tif", ".tiff", ".webp")
"""Suffixes of torchvision's ImageFolder."""
SIZE = 224
"""Pixels."""
RESIZED, CROPPED = 256, 224
"""ImageNet's published evaluation: the shorter side is resized to 256 pixels, then the middle 224x224 are cropped."""


@dataclass(frozen=True, eq=False)
class ImageFolderSet:
    """One split of an image folder; only names and labels are in memory."""

    root: Path
    split: str
    classes: ClassList
    """Names of the class folders, sorted."""
    files: tuple[str, ...]
    """Paths inside the split's folder, CLASS/NAME, sorted class by class."""
    labels: np.ndarray
    """(N,) int64."""
    default_size: int = SIZE
    """Default side, in pixels, of the network's input."""

    @property
    def name(self) -> str:
        """The folder's name."""
        return self.root.absolute().name

    def __len__(self) -> int:
        return len(self.labels)

    def __getitem__(self, index: int) -> tuple[np.ndarray, int]:
        """Returns the image (H, W, 3) uint8 RGB at the file's size, and the class id."""
        return read_picture(self.root / self.split / self.files[index]), int(self.labels[index])

    def evaluation_view(self, image: np.ndarray, size: int) -> np.ndarray:
        """Returns the middle of the picture (size, size, 3), as ImageNet is evaluated."""
        return centre_view(image, size)

    @cached_property
    def list_hash(self) -> str:
        """First 12 digits of the SHA-256 over the paths CLASS/NAME: equal hashes mean the same images."""
        return hashlib.sha256("\n".join(self.files).encode("utf-8", "surrogateescape")).hexdigest()[:12]

    def subset(self, indices: Sequence[int] | np.ndarray) -> "ImageFolderSet":
        """Returns these images, in this order."""
        chosen = np.asarray(indices, np.int64)
        return replace(self, files=tuple(self.files[index] for index in chosen), labels=self.labels[chosen])


def open_image_folder(root: Path, split: str) -> ImageFolderSet:
    """Lists `root/split/CLASS/**`; InputError for no classes, an empty one, or other classes than in another split."""
    if split not in SPLITS or not (root / split).is_dir():
        there = [name for name in SPLITS if (root / name).is_dir()]
        raise InputError(
            f"{root}: no split {split!r}; expected {split}/CLASS/*.jpg, there is {', '.join(there) or 'none'}"
        )
    names = _class_folders(root / split)
    if not names:
        raise InputError(f"{root / split}: holds no class folders; expected {split}/CLASS/*.jpg")
    for other in SPLITS:
        _check_same(root, split, names, other)
    try:
        classes = ClassList.of_names(names)
    except InputError as error:
        raise InputError(f"{root / split}: {error}") from error
    files, labels = list[str](), list[int]()
    for class_id, name in enumerate(names):
        pictures = _pictures(root / split, name)
        if not pictures:
            raise InputError(f"{root / split / name}: holds no images ({', '.join(SUFFIXES)}); every class needs some")
        files += pictures
        labels += [class_id] * len(pictures)
    return ImageFolderSet(root, split, classes, tuple(files), np.array(labels, np.int64))


def read_picture(path: Path) -> np.ndarray:
    """Reads a picture as (H, W, 3) uint8 RGB.

    Grey, palette and CMYK files are converted and transparency is dropped, as is usual for ImageNet, which has some of
    each. The EXIF orientation is ignored.
    """
    return look_at(path, to_rgb)


def _class_folders(folder: Path) -> list[str]:
    """Returns the names of the folders in it, sorted, without hidden ones."""
    if not folder.is_dir():
        return []
    return sorted(entry.name for entry in os.scandir(folder) if entry.is_dir() and not entry.name.startswith("."))


def _check_same(root: Path, split: str, names: list[str], other: str) -> None:
    """Raises InputError where another split has other class names: ids are positions among the sorted names."""
    others = _class_folders(root / other)
    different = sorted(set(names) ^ set(others)) if others else []
    if different:
        where = split if different[0] in names else other
        raise InputError(
            f"{root}: {split}/ and {other}/ have different class folders ({different[0]} is in {where}/ alone); "
            f"ids go by "
            "their sorted names, so they must be the same"
        )


def _pictures(split: Path, name: str) -> list[str]:
    """Returns the paths, relative to `split`, of all images below the class folder, sorted."""
    found = []
    for folder, folders, files in os.walk(split / name, followlinks=True):
        folders[:] = sorted(entry for entry in folders if not entry.startswith("."))
        inside = Path(folder).relative_to(split).as_posix()
        found += [f"{inside}/{file}" for file in files if file.lower().endswith(SUFFIXES) and not file.startswith(".")]
    return sorted(found)


def centre_view(image: np.ndarray, size: int) -> np.ndarray:
    """Resizes the shorter side of (H, W, 3) uint8 to size * 256 / 224 and crops the middle (size, size, 3).

    The resize is bilinear with antialiasing.
    """
    height, width = image.shape[:2]
    short = size * RESIZED // CROPPED
    tall = (max(short, short * height // width), max(short, short * width // height))
    image = _resize(image, *tall)
    top, left = (round((side - size) / 2) for side in tall)
    return image[top : top + size, left : left + size]


def whole_view(image: np.ndarray, size: int) -> np.ndarray:
    """Resizes (H, W, 3) uint8 to (size, size, 3); a picture of the right size is returned as it is."""
    return image if image.shape[:2] == (size, size) else _resize(image, size, size)


def _resize(image: np.ndarray, height: int, width: int) -> np.ndarray:
    return np.asarray(Image.fromarray(image).resize((width, height), Image.Resampling.BILINEAR))
