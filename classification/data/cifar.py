"""CIFAR-10 and CIFAR-100 in the official Python version, as torchvision reads and publishes them."""

import hashlib
import os
import tarfile
from pathlib import Path

import numpy as np
from torchvision.datasets import CIFAR10, CIFAR100

from steadyseg.classification.data.labelled import ClassificationSet, class_list, whole_view
from steadyseg.core.errors import InputError, in_line
from steadyseg.core.system.fetching import FetchError, fetch, unfinished_files

SOURCE_NOTE = (
    "CIFAR-10 and CIFAR-100 are published without a licence text (https://www.cs.toronto.edu/~kriz/cifar.html). "
    "Please cite Krizhevsky, 'Learning Multiple Layers of Features from Tiny Images', 2009."
)
SIDE = 32
"""Pixels."""

Library = type[CIFAR10]
LIBRARIES: dict[str, Library] = {"cifar10": CIFAR10, "cifar100": CIFAR100}
"""Data sets by the names of `steadyseg data`."""
SHA256 = {
    "cifar10": "6d958be074577803d12ecdefd02955f39262c83c16fe9348329d7fe0b5c001ce",
    "cifar100": "85cd44d02ba6437773c5bbd22e183051d648de2e7d6b014e1ef29b855ba677a7",
}
"""Sums of the archives from Keras (keras/src/datasets/cifar10.py, cifar100.py); torchvision has their MD5 alone."""
SUBSETS = set(
    """
    5e183cb8ab95228673362d226a824087 dfc04037228fba1fcef42479ac82c87d b3072cb444a240f3639a302774af568c
    f978d3e929f3f63ff24f16339731314f 310ffaf5d60a9c71f7305bc947b3efc1 886a672393b7c878c09cd78cbd743b6f
    977d17fe930352af66919227335b34c9 7806e1e944b83299864ed7ccdc059da6 fec648ff3f2fdf3a0dec4409d9e0ca90
    52eb0deaf7f5863dadc047c62b1d326f
    """.split()
)
"""MD5 of the class-balanced subsets with which the included classifiers were made."""


def find_cifar(data: Path) -> tuple[Path, Library] | None:
    """Finds the folder with the pickles, `data` or a folder in it; None without pickles, InputError for two sets."""
    found = [
        (folder, library)
        for library in LIBRARIES.values()
        for folder in (data, data / library.base_folder)
        if folder.is_dir() and (folder.name == library.base_folder or _has_files(folder, library))
    ]
    if len(found) > 1:
        raise InputError(f"{data}: holds CIFAR-10 and CIFAR-100; give the folder of one, such as {found[0][0]}")
    return found[0] if found else None


def open_cifar(folder: Path, library: Library, split: str) -> ClassificationSet:
    """Reads the split; InputError names a file that is missing or unknown, as a pickle can run code when it is read."""
    if split not in ("train", "test"):
        raise InputError(
            f"{folder}: CIFAR has a train and a test split, not {split!r}; hold out a part of train to choose "
            f"settings on"
        )
    sums = {name: _known_sum(folder / name, md5) for name, md5 in published(library).items()}
    found = {
        "base_folder": folder.resolve().name,
        "train_list": [(name, sums[name]) for name, _ in library.train_list],
        "test_list": [(name, sums[name]) for name, _ in library.test_list],
        "meta": library.meta | {"md5": sums[library.meta["filename"]]},
    }
    read = type("Copy", (library,), found)(folder.resolve().parent, train=split == "train")
    classes = class_list(read.classes, folder)
    images, labels = np.ascontiguousarray(read.data), np.array(read.targets, np.int64)
    return ClassificationSet(library.__name__.lower(), classes, labels, SIDE, whole_view, images)


def published(library: Library) -> dict[str, str]:
    """Returns the MD5 of the published files by name."""
    return dict([*library.train_list, *library.test_list, (library.meta["filename"], library.meta["md5"])])


def download_cifar(library: Library, root: Path, sha256: str) -> bool:
    """Makes the folder in `root` hold the published files; returns False where they were there already.

    Other files in their place are refused and never overwritten. InputError in one line for everything that goes wrong.
    """
    folder = root / library.base_folder
    if folder.exists():
        for name, md5 in published(library).items():
            if not (folder / name).is_file() or _md5(folder / name) != md5:
                raise InputError(
                    f"{folder / name}: missing or not the published file; nothing was changed: move {folder} away or "
                    "give another -o"
                )
        return False
    try:
        root.mkdir(parents=True, exist_ok=True)
        with unfinished_files(root) as parts:
            fetch(library.url, parts / library.filename, sha256=sha256, progress=True)
            with tarfile.open(parts / library.filename, "r:gz") as tar:
                tar.extractall(parts, filter="data")
            os.replace(parts / library.base_folder, folder)
    except FetchError as failure:
        raise InputError(f"{library.url} {failure}; run the same command again") from failure
    except OSError as error:
        raise InputError(
            f"{error.filename or root}: cannot be written ({in_line(error)}); give a root folder that is writable and "
            "has 0.5 GB of room"
        ) from error
    return True


def _has_files(folder: Path, library: Library) -> bool:
    *batches, meta = published(library)
    return (folder / meta).is_file() and any((folder / name).is_file() for name in batches)


def _known_sum(path: Path, published_md5: str) -> str:
    if not path.is_file():
        again = "fetch the data set again (steadyseg data cifar10 or cifar100)"
        raise InputError(f"{path}: missing, so the copy is not complete; {again}")
    md5 = _md5(path)
    if md5 != published_md5 and md5 not in SUBSETS:
        raise InputError(
            f"{path}: MD5 {md5}, expected {published_md5} of the published file; fetch the data set again (steadyseg "
            "data), or lay pictures of your own in train/CLASS/"
        )
    return md5


def _md5(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, lambda: hashlib.md5(usedforsecurity=False)).hexdigest()
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({in_line(error)})") from error
