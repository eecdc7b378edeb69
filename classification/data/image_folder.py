"""Folders of classes as in ImageNet: `train/CLASS/*.jpg` with `val/` or `test/`. An archive may replace each folder.

Pictures of a folder are read from disk one by one. An archive is not unpacked but read once, and its pictures are
decoded into one uint8 array. CIFAR-10's 50,000 pictures of 32 x 32 take 154 MB, and 5 s on one core.
"""

import os
import zipfile
import zlib
from collections import Counter
from collections.abc import Collection, Mapping
from pathlib import Path

import numpy as np

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
    names = _class_names(root, split, "/", {name: _class_folders(root / name) for name in SPLITS})
    files, labels = list[str](), list[int]()
    for class_id, name in enumerate(names):
        pictures = _pictures(root / split, name)
        if not pictures:
            raise InputError(f"{root / split / name}: holds no images ({', '.join(SUFFIXES)}); every class needs some")
        files += pictures
        labels += [class_id] * len(pictures)
    classes, ids = class_list(names, root / split), np.array(labels, np.int64)
    name = root.absolute().name
    return ClassificationSet(name, classes, ids, SIZE, centre_view, files=tuple(files), folder=root / split)


def _class_folders(folder: Path) -> list[str] | None:
    """Returns the names of its folders, without hidden folders; None if it is not there."""
    if not folder.is_dir():
        return None
    return [entry.name for entry in os.scandir(folder) if entry.is_dir() and not entry.name.startswith(".")]


def _class_names(root: Path, split: str, suffix: str, found: Mapping[str, Collection[str] | None]) -> list[str]:
    """Returns the sorted classes of the split, by which ids go.

    `found` has the classes of every split, None for an absent one. InputError where the split is absent, has no
    classes, or other classes than another split.
    """
    if (own := found.get(split)) is None:
        there = ", ".join(f"{name}{suffix}" for name, classes in found.items() if classes is not None) or "none"
        raise InputError(f"{root}: no split {split!r}; expected {split}{suffix} with CLASS/*.jpg, there is {there}")
    if not own:
        raise InputError(
            f"{root / split}{suffix}: holds no class folders with images ({', '.join(SUFFIXES)}); expected CLASS/*.jpg"
        )
    for other, classes in found.items():
        if classes and (different := sorted({*own} ^ {*classes})):
            raise InputError(
                f"{root}: {split}{suffix} and {other}{suffix} have different class folders ({different[0]} is in "
                f"{split if different[0] in own else other}{suffix} alone); ids go by their sorted names, so they must "
                "be the same"
            )
    return sorted(own)


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


def open_zip_folder(root: Path, split: str) -> ClassificationSet:
    """Decodes all of `root/SPLIT.zip`.

    InputError if it is missing, damaged or hostile, or if another split has other classes. It must hold class folders,
    with pictures of one size.
    """
    paths = {name: root / f"{name}.zip" for name in SPLITS}
    by_class = {name: _pictures_by_class(path) if path.is_file() else None for name, path in paths.items()}
    names, found, path = _class_names(root, split, ".zip", by_class), by_class.get(split) or {}, paths[split]
    classes = class_list(names, path)
    entries = [entry for name in names for entry in found[name]]
    labels = np.repeat(np.arange(len(names)), [len(found[name]) for name in names])
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
    counts = Counter(entry.filename for entry in pictures)
    for entry in pictures:
        _check_entry(path, entry)
        if counts[entry.filename] > 1:
            raise InputError(f"{path}: holds {_shown(entry)} twice; expected each name once, pack it again")
    parts = [entry.filename.split("/") for entry in pictures]
    skipped = 1 if len({part[0] for part in parts}) == 1 and all(len(part) > 2 for part in parts) else 0
    found: dict[str, list[zipfile.ZipInfo]] = {}
    for part, entry in zip(parts, pictures, strict=True):
        if len(part) > skipped + 1:
            found.setdefault(part[skipped], []).append(entry)
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
    """Returns (N, h, w, 3) uint8 RGB; the first picture decides the size."""
    with zipfile.ZipFile(path) as archive:
        height, width, _ = _read(path, archive, entries[0]).shape
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
            picture = _read(path, archive, entry)
            if picture.shape != images.shape[1:]:
                raise InputError(
                    f"{path}: {_shown(entry)} has {picture.shape[1]}x{picture.shape[0]} pixels, the first picture "
                    f"{width}x{height}; pictures in an archive are of one size, unpack others into {path.stem}/"
                )
            images[place] = picture
    return images


def _read(path: Path, archive: zipfile.ZipFile, entry: zipfile.ZipInfo) -> np.ndarray:
    """Unpacks and decodes one picture."""
    try:
        content = archive.read(entry)  # stops at the size that the archive states, then compares the CRC
    except READ_ERRORS as error:
        raise InputError(f"{path}: {_shown(entry)} cannot be unpacked ({first_line(error)[:200]})") from error
    return look_at(path / entry.filename, to_rgb, content)


def _shown(entry: zipfile.ZipInfo) -> str:
    return ascii(entry.filename[-80:])[1:-1]
