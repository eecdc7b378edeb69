"""Coarse labels: an id stands for a set of classes, of which any is right, such as {Building, Tree}.

In memory a coarse label is (H, W) int32: bit c of a pixel is set where class c is allowed, and 0 is void. Labels of one
class a pixel stay uint8 ids. The type tells the two apart.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from steadyseg.core.classes import ClassList
from steadyseg.core.errors import InputError, shorten
from steadyseg.core.system.files import read_small
from steadyseg.core.system.json_text import parse_json
from steadyseg.seg.data.camvid_original import read_label_file
from steadyseg.seg.data.formats.source import CLASSES_FILE

MAX_COARSE_CLASSES = 31
"""Bits of a positive int32."""
EXAMPLE = '{"0": ["Road"], "5": ["Building", "Tree"]}'
UNKNOWN = -1
"""Entry of an id that the file does not describe."""


def read_allows(root: Path, classes: ClassList) -> np.ndarray | None:
    """Returns (256,) int32: the bits of the classes that each id of the folder's labels allows, 0 for void, `UNKNOWN`
    for other ids. None if the folder's `classes.json` has no "allows". InputError for a set that is empty or names a
    class outside `classes`.
    """
    path = root / CLASSES_FILE
    record = parse_json(read_small(path)) if path.is_file() else None
    if not isinstance(record, dict) or "allows" not in record:
        return None
    try:
        return allowed_bits(record["allows"], record.get("void", 255), classes)
    except InputError as error:
        raise InputError(f"{path}: {error}") from error


def allowed_bits(allows: Any, void: Any, classes: ClassList) -> np.ndarray:
    """Returns the table of `read_allows` of the sets {"id": [class, ...]} and the void id."""
    if not isinstance(allows, Mapping) or not allows:
        raise InputError(f'"allows" is an object such as {EXAMPLE}, got {shorten(allows)}')
    if len(classes) > MAX_COARSE_CLASSES:
        raise InputError(f'"allows" works with at most {MAX_COARSE_CLASSES} classes, got {len(classes)}')
    if type(void) is not int or not 0 <= void <= 255:
        raise InputError(f"the void id is a whole number in 0..255, got {shorten(void)}")
    bits = np.full(256, UNKNOWN, np.int32)
    for key, names in allows.items():
        if not (key.isdecimal() and int(key) <= 255 and int(key) != void):
            raise InputError(f'the ids of "allows" are "0" to "255" without void ({void}), got {shorten(key)}')
        if not isinstance(names, list) or not names:
            raise InputError(f'"allows" of id {key} is a list of one or more classes, got {shorten(names)}')
        unknown = [name for name in names if name not in classes.names]
        if unknown:
            raise InputError(
                f'"allows" of id {key} names {shorten(unknown[0])}, which is none of {", ".join(classes.names)}'
            )
        bits[int(key)] = np.bitwise_or.reduce([1 << classes.names.index(name) for name in names])
    bits[void] = 0
    return bits


def allowed_names(allows: Any) -> list[str]:
    """Returns the names in the sets {"id": [class, ...]}, in their order; InputError for other values than sets."""
    if not isinstance(allows, Mapping) or not all(isinstance(names, list) and names for names in allows.values()):
        raise InputError(f'"allows" names one or more classes for each id, as {EXAMPLE}, got {shorten(allows)}')
    return list(dict.fromkeys(str(name) for names in allows.values() for name in names))


def read_coarse_label(path: Path, classes: ClassList, bits: np.ndarray) -> np.ndarray:
    """Reads (H, W) int32 sets of classes from an 8-bit grey or palette PNG; `bits` is the table of `read_allows`."""
    ids = read_label_file(path, ("L", "P"), "an 8-bit grey or palette PNG of ids")
    if unknown := [number for number in np.unique(ids).tolist() if bits[number] == UNKNOWN]:
        raise InputError(f'{path}: has the ids {unknown[:5]}, which "allows" in {CLASSES_FILE} does not describe')
    return bits[ids]


def is_coarse(label: np.ndarray) -> bool:
    """True if a label holds sets of classes."""
    return label.dtype == np.int32


def void_of(label: np.ndarray, void: int) -> int:
    """Returns the value of void in a label: 0 in sets, else the id `void`."""
    return 0 if is_coarse(label) else void


def is_right(predicted: np.ndarray, label: np.ndarray) -> np.ndarray:
    """(H, W) uint8 ids, and a label of ids or sets -> (H, W) bool: the label is, or allows, the predicted class."""
    return label >> predicted.astype(np.int32) & 1 == 1 if is_coarse(label) else predicted == label


def pack_label(sets: np.ndarray, choice: np.ndarray | None = None) -> np.ndarray:
    """Packs (H, W) int32 sets and (H, W, 2) uint8 choices inside the sets (`seg.within`) as (H, W) int64: bits 0 to 30
    are the set, 32 to 39 the chosen class, 40 to 47 its share times 255."""
    packed = sets.astype(np.int64)
    if choice is not None:
        packed |= choice[..., 0].astype(np.int64) << 32 | choice[..., 1].astype(np.int64) << 40
    return packed


def as_sets(label: np.ndarray, classes: ClassList) -> np.ndarray:
    """Returns any label as (H, W) int32 sets: one bit for an id, 0 for void."""
    if is_coarse(label):
        return label
    bits = np.zeros(256, np.int32)
    bits[: len(classes)] = 1 << np.arange(len(classes))
    return bits[label]
