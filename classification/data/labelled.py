"""Labelled images of one split, in memory or read from disk picture by picture, and their views in an evaluation."""

import hashlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import numpy as np
from PIL import Image

from steadyseg.core.classes import ClassList
from steadyseg.core.errors import InputError
from steadyseg.core.system.pictures import look_at, to_rgb

RESIZED, CROPPED = 256, 224
"""ImageNet's published evaluation: the shorter side is resized to 256 pixels, then the middle 224x224 are cropped."""


@dataclass(frozen=True, eq=False)
class ClassificationSet:
    """Labelled images of one split."""

    name: str
    """cifar10, cifar100, or the folder's name."""
    classes: ClassList
    labels: np.ndarray
    """(N,) int64 class ids."""
    default_size: int
    """Default side, in pixels, of the network's input."""
    evaluation_view: Callable[[np.ndarray, int], np.ndarray]
    """(H, W, 3) uint8, size -> the network's input (size, size, 3) uint8 in an evaluation."""
    images: np.ndarray | None = None
    """(N, h, w, 3) uint8 RGB; None if each picture is read when it is needed."""
    files: tuple[str, ...] = ()
    """CLASS/NAME of each image, sorted class by class, with the CRC-32 in archives; empty for CIFAR."""
    folder: Path = Path()
    """Folder of `files`."""

    def __len__(self) -> int:
        return len(self.labels)

    def __getitem__(self, index: int) -> tuple[np.ndarray, int]:
        """Returns the image (H, W, 3) uint8 RGB and the class id."""
        image = read_picture(self.folder / self.files[index]) if self.images is None else self.images[index]
        return image, int(self.labels[index])

    @cached_property
    def list_hash(self) -> str:
        """First 12 digits of the SHA-256 over `files`, or over labels and pixels: equal hashes mean equal images."""
        if self.files:
            return hashlib.sha256("\n".join(self.files).encode("utf-8", "surrogateescape")).hexdigest()[:12]
        digest = hashlib.sha256(self.labels.astype("<i8").tobytes())
        digest.update(b"" if self.images is None else np.ascontiguousarray(self.images).data)
        return digest.hexdigest()[:12]

    def subset(self, indices: Sequence[int] | np.ndarray) -> "ClassificationSet":
        """Returns these images, in this order."""
        chosen = np.asarray(indices, np.int64)
        files = tuple(self.files[index] for index in chosen) if self.files else ()
        images = None if self.images is None else self.images[chosen]
        return replace(self, files=files, images=images, labels=self.labels[chosen])


def class_list(names: Iterable[str], path: Path) -> ClassList:
    """Returns the classes of these names; InputError with the path where they make no class list."""
    try:
        return ClassList.of_names(names)
    except InputError as error:
        raise InputError(f"{path}: {error}") from error


def read_picture(path: Path) -> np.ndarray:
    """Reads a picture as (H, W, 3) uint8 RGB.

    Grey, palette and CMYK files are converted and transparency is dropped, as is usual for ImageNet, which has some of
    each. The EXIF orientation is ignored, as in torchvision's ImageFolder, but Pillow turns a TIFF.
    """
    return look_at(path, to_rgb)


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


def square_view(image: np.ndarray, size: int) -> np.ndarray:
    """Returns (size, size, 3): a square picture resized, or the middle square of any other picture."""
    return whole_view(image, size) if image.shape[0] == image.shape[1] else centre_view(image, size)


def _resize(image: np.ndarray, height: int, width: int) -> np.ndarray:
    return np.asarray(Image.fromarray(image).resize((width, height), Image.Resampling.BILINEAR))
