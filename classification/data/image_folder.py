"""Folders of classes as in ImageNet: `train/CLASS/*.jpg` with `val/` or `test/`. An archive may replace each folder.

Pictures of a folder are read from disk one by one. An archive is not unpacked but read once, and its pictures are
decoded into one uint8 array. CIFAR-10's 50,000 pictures of 32 x 32 take 154 MB, and 5 s on one core.
"""

import os
import zipfile
import zlib
from collections.abc import Callable, Collection
from pathlib import Path
from typing import TypeVar

import numpy as np
from PIL import Image

from steadyseg.classification.data.labelled import ClassificationSet, centre_view, class_list, square_view
from steadyseg.core.errors import InputError, first_line
from steadyseg.core.system.pictures import look_at, to_rgb

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
        here = Path(folder).resolve()
        loops = {entry for entry in folders if (here / entry).resolve() in (here, *here.parents)}  # links upwards
        folders[:] = sorted(entry for entry in folders if not entry.startswith(".") and entry not in loops)
        inside = Path(folder).relative_to(split).as_posix()
        found += [f"{inside}/{file}" for file in files if file.lower().endswith(SUFFIXES) and not file.startswith(".")]
    return sorted(found)


MAX_ENTRIES = 2**21
"""Most files in an archive; ImageNet has 1.3 million."""
MAX_PICTURE_BYTES = 2**26
"""Largest unpacked size of one file."""
MAX_ARRAY_BYTES = 2**33
"""Largest size of all decoded pictures of a split, 8.6 GB."""
METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
"""Compressions that are read in bounded pieces: Python's zipfile unpacks a block of bzip2 or LZMA whole."""
ENCRYPTED = 0x1
READ_ERRORS = (zipfile.BadZipFile, zlib.error, EOFError, OSError, NotImplementedError, RuntimeError, ValueError)
"""Errors that zipfile raises for a damaged archive."""

Seen = TypeVar("Seen")


def open_zip_folder(root: Path, split: str) -> ClassificationSet:
    """Decodes all of `root/SPLIT.zip`.

    InputError if it is missing, damaged or hostile, or if another split has other classes. It must hold class folders,
    with pictures of one size.
    """
    archives = {name: root / f"{name}.zip" for name in SPLITS if (root / f"{name}.zip").is_file()}
    if split not in archives:
        there = ", ".join(path.name for path in archives.values()) or "none"
        raise InputError(f"{root}: no split {split!r}; expected {split}.zip with CLASS/*.jpg inside, there is {there}")
    by_class = {name: _pictures_by_class(path) for name, path in archives.items()}
    names = sorted(by_class[split])
    for other, found in by_class.items():
        require_same_classes(root, f"{split}.zip", names, f"{other}.zip", found)
    path = archives[split]
    classes = class_list(names, path)
    entries = [entry for name in names for entry in by_class[split][name]]
    labels = np.repeat(np.arange(len(names)), [len(by_class[split][name]) for name in names])
    files = tuple(f"{entry.filename} {entry.CRC:08x}" for entry in entries)
    images = _decode(path, entries)
    name, side = root.absolute().name, min(images.shape[1:3])
    return ClassificationSet(name, classes, labels, side, square_view, images, files)


def _pictures_by_class(path: Path) -> dict[str, list[zipfile.ZipInfo]]:
    """Returns the pictures of each class folder, sorted by name.

    A folder that holds all class folders, as in `zip -r train.zip train`, is skipped.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            entries = archive.infolist()
    except READ_ERRORS as error:
        raise InputError(f"{path}: cannot be read as a zip archive ({first_line(error)[:200]})") from error
    if len(entries) > MAX_ENTRIES:
        raise InputError(f"{path}: {len(entries)} files, at most {MAX_ENTRIES} are read; split it or unpack it")
    pictures = [entry for entry in entries if _is_picture(entry.filename)]
    seen = set[str]()
    for entry in pictures:
        _check_entry(path, entry)
        if entry.filename in seen:
            raise InputError(f"{path}: holds {_shown(entry)} twice; expected each name once, pack it again")
        seen.add(entry.filename)
    parts = [entry.filename.split("/") for entry in pictures]
    skipped = 1 if len({part[0] for part in parts}) == 1 and all(len(part) > 2 for part in parts) else 0
    found: dict[str, list[zipfile.ZipInfo]] = {}
    for part, entry in zip(parts, pictures, strict=True):
        if len(part) > skipped + 1:
            found.setdefault(part[skipped], []).append(entry)
    if not found:
        raise InputError(f"{path}: holds no class folders with images ({', '.join(SUFFIXES)}); expected CLASS/*.jpg")
    return {name: sorted(entries, key=lambda entry: entry.filename) for name, entries in found.items()}


def _is_picture(name: str) -> bool:
    """True for the name of a picture that is neither hidden nor in a hidden folder or macOS's __MACOSX."""
    hidden = any((part.startswith(".") and part not in (".", "..")) or part == "__MACOSX" for part in name.split("/"))
    return name.lower().endswith(SUFFIXES) and not hidden


def _check_entry(path: Path, entry: zipfile.ZipInfo) -> None:
    """Raises InputError for a name that leads elsewhere, and for a file that cannot be read in bounded memory."""
    name = entry.filename
    if name != entry.orig_filename or "\\" in name or any(part in ("", ".", "..") for part in name.split("/")):
        raise InputError(f"{path}: has the name {entry.orig_filename[:80]!a}; expected CLASS/NAME, pack it again")
    if entry.flag_bits & ENCRYPTED:
        raise InputError(f"{path}: {_shown(entry)} is encrypted; expected an archive without a password")
    if entry.compress_type not in METHODS:
        raise InputError(f"{path}: {_shown(entry)} is compressed by another method than deflate; pack it again")
    if entry.file_size > MAX_PICTURE_BYTES:
        raise InputError(
            f"{path}: {_shown(entry)} unpacks to {entry.file_size} bytes, at most {MAX_PICTURE_BYTES} are read"
        )


def _decode(path: Path, entries: list[zipfile.ZipInfo]) -> np.ndarray:
    """Returns (N, h, w, 3) uint8 RGB; the first picture decides the size, and its header the size of the array."""
    with zipfile.ZipFile(path) as archive:
        width, height = _look(path, archive, entries[0], lambda picture: picture.size)
        size = len(entries) * height * width * 3
        if size > MAX_ARRAY_BYTES:
            raise InputError(
                f"{path}: {len(entries)} pictures of {width}x{height} take {size / 1e9:.1f} GB decoded, at most "
                f"{MAX_ARRAY_BYTES / 1e9:.1f} are read at once; unpack it into {path.stem}/"
            )
        try:
            images = np.empty((len(entries), height, width, 3), np.uint8)
        except MemoryError as error:
            raise InputError(
                f"{path}: its pictures take {size / 1e9:.1f} GB decoded, more than there is; unpack it"
            ) from error
        for place, entry in enumerate(entries):

            def to_array(picture: Image.Image, entry: zipfile.ZipInfo = entry) -> np.ndarray:
                if picture.size != (width, height):
                    found = "x".join(map(str, picture.size))
                    raise InputError(
                        f"{path}: {_shown(entry)} has {found} pixels, the first picture {width}x{height}; pictures in "
                        f"an archive are of one size, unpack others into {path.stem}/"
                    )
                return to_rgb(picture)

            images[place] = _look(path, archive, entry, to_array)
    return images


def _look(path: Path, archive: zipfile.ZipFile, entry: zipfile.ZipInfo, look: Callable[[Image.Image], Seen]) -> Seen:
    """Unpacks one picture and hands it, opened but not decoded, to `look`."""
    try:
        content = archive.read(entry)  # stops at the size that the archive states, then compares the CRC
    except READ_ERRORS as error:
        raise InputError(f"{path}: {_shown(entry)} cannot be unpacked ({first_line(error)[:200]})") from error
    return look_at(path / entry.filename, look, content)


def _shown(entry: zipfile.ZipInfo) -> str:
    return ascii(entry.filename[-80:])[1:-1]
