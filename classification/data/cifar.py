"""CIFAR-10 and CIFAR-100 from the pickles of the official Python version, whole or a subset in the same layout."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from steadyseg.classification.data.labelled import ClassificationSet, class_list, whole_view
from steadyseg.classification.data.safe_pickle import byte_array, read_pickle
from steadyseg.core.classes import ClassList
from steadyseg.core.errors import InputError

SIDE = 32
"""Pixels."""


@dataclass(frozen=True)
class CifarLayout:
    """File and key names of one of the two data sets."""

    name: str
    folder: str
    meta: str
    files: dict[str, tuple[str, ...]]
    """File names by split."""
    labels_key: str
    names_key: str
    class_count: int


CIFAR10 = CifarLayout(
    "cifar10",
    "cifar-10-batches-py",
    "batches.meta",
    {"train": tuple(f"data_batch_{number}" for number in range(1, 6)), "test": ("test_batch",)},
    "labels",
    "label_names",
    10,
)
CIFAR100 = CifarLayout(
    "cifar100",
    "cifar-100-python",
    "meta",
    {"train": ("train",), "test": ("test",)},
    "fine_labels",
    "fine_label_names",
    100,
)


def find_cifar(data: Path) -> tuple[Path, CifarLayout] | None:
    """Finds the folder with the pickles, `data` or one in it; None where there is none, InputError for two."""
    found = [
        (folder, layout)
        for layout in (CIFAR10, CIFAR100)
        for folder in (data, data / layout.folder)
        if folder.is_dir() and (folder.name == layout.folder or _has_files(folder, layout))
    ]
    if len(found) > 1:
        raise InputError(f"{data}: holds CIFAR-10 and CIFAR-100; give the folder of one, such as {found[0][0]}")
    return found[0] if found else None


def open_cifar(folder: Path, layout: CifarLayout, split: str) -> ClassificationSet:
    """Reads the split; InputError names the file that is missing, damaged, hostile or of another shape."""
    if split not in layout.files:
        raise InputError(
            f"{folder}: CIFAR has a train and a test split, not {split!r}; hold out a part of train to choose "
            f"settings on"
        )
    classes = _class_names(folder / layout.meta, layout)
    parts = [_batch(folder / name, layout) for name in layout.files[split]]
    images, labels = (np.concatenate(column) for column in zip(*parts, strict=True))
    return ClassificationSet(layout.name, classes, labels, SIDE, whole_view, images)


def _has_files(folder: Path, layout: CifarLayout) -> bool:
    names = [name for files in layout.files.values() for name in files]
    return (folder / layout.meta).is_file() and any((folder / name).is_file() for name in names)


def _read(path: Path) -> dict[str, Any]:
    if not path.is_file():
        raise InputError(f"{path}: missing, so the copy is not complete; fetch the data set again (steadyseg data)")
    return read_pickle(path)


def _class_names(path: Path, layout: CifarLayout) -> ClassList:
    names = _read(path).get(layout.names_key)
    if not isinstance(names, list) or len(names) != layout.class_count:
        raise InputError(f"{path}: has no list of {layout.class_count} {layout.names_key}; is it CIFAR's?")
    if not all(isinstance(name, bytes | str) and name for name in names):
        raise InputError(f"{path}: {layout.names_key} holds something else than names")
    return class_list((name.decode("latin-1") if isinstance(name, bytes) else name for name in names), path)


def _batch(path: Path, layout: CifarLayout) -> tuple[np.ndarray, np.ndarray]:
    """Returns images (n, 32, 32, 3) uint8 and labels (n,) int64; a row of the file holds the planes R, G, B in turn."""
    record = _read(path)
    data, labels = byte_array(record.get("data")), record.get(layout.labels_key)
    if data is None:
        raise InputError(f"{path}: `data` is no whole array of bytes; expected uint8 rows of {3 * SIDE * SIDE}")
    if data.ndim != 2 or data.shape[1] != 3 * SIDE * SIDE:
        raise InputError(f"{path}: `data` has the shape {data.shape}, expected rows of {3 * SIDE * SIDE} bytes")
    if not isinstance(labels, list) or len(labels) != len(data):
        count = len(labels) if isinstance(labels, list) else "no list of"
        raise InputError(f"{path}: {len(data)} images and {count} {layout.labels_key}; expected one for each")
    if not all(type(label) is int and 0 <= label < layout.class_count for label in labels):
        raise InputError(f"{path}: {layout.labels_key} must lie in 0..{layout.class_count - 1}; is it CIFAR's?")
    images = data.reshape(-1, 3, SIDE, SIDE).transpose(0, 2, 3, 1)
    return np.ascontiguousarray(images), np.array(labels, np.int64)
