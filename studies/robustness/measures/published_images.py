"""The published `.npy` files of CIFAR-10-C, CIFAR-100-C and CIFAR-10-P: memory-mapped, never unpickled."""

from pathlib import Path
from tokenize import TokenError

import numpy as np

from steadyseg.core.corruptions.corruptions import BENCHMARK_CORRUPTIONS, SEVERITIES, TUNING_CORRUPTIONS, require_known
from steadyseg.core.errors import InputError
from steadyseg.studies.robustness.measures.perturbations import PUBLISHED, PUBLISHED_EXTRA

PICTURE = (32, 32, 3)


def open_corruption(folder: Path, name: str) -> tuple[np.ndarray, np.ndarray]:
    """`name`.npy and labels.npy -> pictures (5, n, 32, 32, 3) uint8, read when used, and labels (n,) int64.

    The files stack the severities: 5 x 10,000 pictures as published, or 5 x n of the first n of them. Raises InputError
    for an unknown type, a missing or damaged file, another shape or dtype, labels that do not repeat from severity to
    severity.
    """
    require_known(name, (*BENCHMARK_CORRUPTIONS, *TUNING_CORRUPTIONS), "corruption")
    path = Path(folder) / f"{name}.npy"
    pictures = _pictures(path, f"(5 n, {', '.join(map(str, PICTURE))})", dimensions=4)
    levels = len(SEVERITIES)
    if len(pictures) % levels:
        raise InputError(f"{path}: {len(pictures)} pictures are not the same number of each of {levels} severities")
    labels = _open(Path(folder) / "labels.npy")
    if labels.shape != pictures.shape[:1] or labels.dtype.kind not in "iu":
        raise InputError(
            f"{folder}/labels.npy: expected {len(pictures)} whole numbers, as many as pictures in {path.name}, got "
            f"{labels.dtype} {labels.shape}"
        )
    by_severity = labels.reshape(levels, -1)
    if (by_severity != by_severity[0]).any():
        raise InputError(
            f"{folder}/labels.npy: the severities have different labels; expected the same pictures in every fifth, as "
            "published: a part of the set is the first n of each severity, not the first of the file"
        )
    return pictures.reshape(levels, -1, *PICTURE), by_severity[0].astype(np.int64)


def open_perturbation(folder: Path, name: str) -> np.ndarray:
    """`name`.npy -> sequences (n, frames, 32, 32, 3) uint8, read when used; n is 10,000 as published, or fewer.

    Raises InputError for an unknown type, a missing or damaged file, another shape or dtype, fewer than two frames.
    """
    require_known(name, (*PUBLISHED, *PUBLISHED_EXTRA), "perturbation")
    path = Path(folder) / f"{name}.npy"
    sequences = _pictures(path, f"(n, frames, {', '.join(map(str, PICTURE))})", dimensions=5)
    if sequences.shape[1] < 2:
        raise InputError(f"{path}: a sequence needs two or more frames, got {sequences.shape[1]}")
    return sequences


def _pictures(path: Path, expected: str, dimensions: int) -> np.ndarray:
    array = _open(path)
    if array.ndim != dimensions or array.shape[-3:] != PICTURE or array.dtype != np.uint8:
        raise InputError(f"{path}: expected uint8 {expected}, got {array.dtype} {array.shape}")
    return array


def _open(path: Path) -> np.ndarray:
    """The array in the file, not empty, memory-mapped."""
    try:
        array = np.load(path, mmap_mode="r", allow_pickle=False)
    except FileNotFoundError as error:
        there = ", ".join(sorted(file.stem for file in path.parent.glob("*.npy"))) or "no .npy file"
        raise InputError(f"{path}: no such file; the folder has {there}") from error
    except (OSError, ValueError, EOFError, OverflowError, TypeError, SyntaxError, TokenError) as error:
        reason = (str(error) or type(error).__name__).splitlines()[0]
        raise InputError(f"{path}: not a whole .npy file of numbers ({reason}); fetch it again") from error
    if not isinstance(array, np.ndarray):
        array.close()
        raise InputError(f"{path}: an archive of arrays (.npz); expected one array (.npy): unpack it")
    if array.size == 0:
        raise InputError(f"{path}: the array is empty, {array.shape}")
    return array
