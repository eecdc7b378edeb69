"""Image folders such as ImageNet: `train/CLASS/*.jpg` and `val/` or `test/`, read from disk picture by picture."""

import os
from collections.abc import Collection
from pathlib import Path

import numpy as np

from steadyseg.classification.data.labelled import ClassificationSet, centre_view, class_list
from steadyseg.core.errors import InputError

SPLITS = ("train", "val", "test")
SUFFIXES = (".jpg", ".jpeg", ".png", ".ppm", ".bmp", ".pgm", ".tif", ".tiff", ".webp")
"""Suffixes of torchvision's ImageFolder."""
SIZE = 224
"""Pixels."""


def open_image_folder(root: Path, split: str) -> ClassificationSet:
    """Lists `root/split/CLASS/**`; InputError for no classes, an empty class, or classes unlike another split's."""
    if split not in SPLITS or not (root / split).is_dir():
        there = [name for name in SPLITS if (root / name).is_dir()]
        raise InputError(
            f"{root}: no split {split!r}; expected {split}/CLASS/*.jpg, there is {', '.join(there) or 'none'}"
        )
    names = _class_folders(root / split)
    if not names:
        raise InputError(f"{root / split}: holds no class folders; expected {split}/CLASS/*.jpg")
    for other in SPLITS:
        if others := _class_folders(root / other):
            require_same_classes(root, f"{split}/", names, f"{other}/", others)
    classes = class_list(names, root / split)
    files, labels = list[str](), list[int]()
    for class_id, name in enumerate(names):
        pictures = _pictures(root / split, name)
        if not pictures:
            raise InputError(f"{root / split / name}: holds no images ({', '.join(SUFFIXES)}); every class needs some")
        files += pictures
        labels += [class_id] * len(pictures)
    name, ids = root.absolute().name, np.array(labels, np.int64)
    return ClassificationSet(name, classes, ids, SIZE, centre_view, files=tuple(files), folder=root / split)


def _class_folders(folder: Path) -> list[str]:
    """Returns the sorted names of its folders, without hidden folders."""
    if not folder.is_dir():
        return []
    return sorted(entry.name for entry in os.scandir(folder) if entry.is_dir() and not entry.name.startswith("."))


def require_same_classes(root: Path, split: str, names: Collection[str], other: str, others: Collection[str]) -> None:
    """Raises InputError where two splits have other class names: ids are positions among the sorted names."""
    if different := sorted(set(names) ^ set(others)):
        where = split if different[0] in names else other
        raise InputError(
            f"{root}: {split} and {other} have different class folders ({different[0]} is in {where} alone); ids go by "
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
