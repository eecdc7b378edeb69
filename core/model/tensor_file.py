"""Safetensors files with a text of ours in the header; pickle is never read."""

import io
import stat
import struct
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np

from steadyseg.core.errors import InputError
from steadyseg.core.system.files import write_atomic
from steadyseg.core.system.json_text import parse_json

if TYPE_CHECKING:
    from torch import Tensor

HEADER_KEY = "steadyseg"
INTEGERS = ("BOOL", "U8", "I8", "U16", "I16", "U32", "I32", "U64", "I64")
EXPONENTS: dict[str, tuple[Any, int]] = {
    "F64": (np.uint64, 0x7FF << 52),
    "F32": (np.uint32, 0xFF << 23),
    "F16": (np.uint16, 0x1F << 10),
    "BF16": (np.uint16, 0xFF << 7),
    "F8_E4M3": (np.uint8, 0x7F),  # all these bits set means NaN; this type has no infinity
    "F8_E5M2": (np.uint8, 0x1F << 2),
}
"""Number types: the integer of the same size, and the bits of the exponent in it."""
MAX_HEADER_BYTES = 16 * 2**20
"""A header of ours is a few hundred kB; a file that claims more is refused before anything is allocated."""
FAMILIARITY_PREFIX = "novelty."  # the name in files since 0.1
INT8_PREFIX = "int8."
PREFIXES = FAMILIARITY_PREFIX, INT8_PREFIX
"""Prefixes of tensors that are not weights of the network: matrices of familiarity, corrections of int8."""


def weights_alone(tensors: Mapping[str, Any]) -> dict[str, Any]:
    """The tensors of the network alone."""
    return {name: value for name, value in tensors.items() if not name.startswith(PREFIXES)}


def replaced(tensors: Mapping[str, Any], prefix: str, own: Mapping[str, Any]) -> dict[str, Any]:
    """The tensors with `own` instead of those whose names begin with the prefix."""
    return {name: tensor for name, tensor in tensors.items() if not name.startswith(prefix)} | dict(own)


def below(tensors: "Mapping[str, Tensor]", prefix: str) -> "dict[str, Tensor]":
    """The tensors whose names begin with the prefix, by the rest of their names."""
    return {name.removeprefix(prefix): tensor for name, tensor in tensors.items() if name.startswith(prefix)}


def write_tensors(path: Path, tensors: "Mapping[str, Tensor]", header: str) -> None:
    """Writes the file atomically: after a crash the old or the new one is there, whole."""
    from safetensors.torch import save

    data = save({name: tensor.contiguous() for name, tensor in tensors.items()}, metadata={HEADER_KEY: header})
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomic(path, data)


def read_tensors(path: Path) -> "tuple[dict[str, Tensor], str]":
    """Reads the tensors and the header's text of a safetensors file; hostile or damaged files raise InputError."""
    from safetensors import SafetensorError
    from safetensors.torch import load

    data = read_whole(path)
    try:
        return load(data), header_text(io.BytesIO(data), path)
    except (SafetensorError, ValueError, OverflowError, KeyError) as error:  # KeyError: a number type torch lacks
        raise not_whole(path, error) from error


def read_whole(path: Path) -> bytes:
    """Reads the bytes of a checkpoint, in one pass; its header is checked before the rest is read."""
    with opened(path) as file:
        header_text(file, path)
        file.seek(0)
        return file.read()


@contextmanager
def opened(path: Path) -> Iterator[BinaryIO]:
    """A context with the file open for reading; InputError where it cannot be read."""
    try:
        if not stat.S_ISREG(path.stat().st_mode):  # a pipe would be waited for
            raise InputError(f"{path}: cannot be read (no regular file)")
        with path.open("rb") as file:
            yield file
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror})") from error


def header_text(file: BinaryIO, path: Path) -> str:
    """Reads the text of our record from the header of an open safetensors file."""
    metadata = read_header(file, path).get("__metadata__")
    text = metadata.get(HEADER_KEY) if isinstance(metadata, dict) else None
    if not isinstance(text, str):
        raise InputError(
            f"{path}: a safetensors file, but not a SteadySeg checkpoint (no {HEADER_KEY!r} in its header)"
        )
    return text


def read_header(file: BinaryIO, path: Path) -> dict[str, Any]:
    """Reads the header of an open safetensors file: the place, type and shape of each tensor, and texts."""
    start = file.read(8)
    length = struct.unpack("<Q", start)[0] if len(start) == 8 else -1
    size = file.seek(0, io.SEEK_END)
    file.seek(8)
    if not 2 <= length <= MAX_HEADER_BYTES or length > size - 8:
        raise InputError(
            f"{path}: not a safetensors checkpoint (its header claims {length} bytes); pickles (.pt, .pth) are "
            "refused because loading one can run code"
        )
    try:
        header = parse_json(file.read(length))
    except ValueError as error:
        raise InputError(f"{path}: not a safetensors checkpoint (its header is not JSON)") from error
    return header if isinstance(header, dict) else {}


def not_whole(path: Path, error: object) -> InputError:
    """The error of a file that is cut off or damaged."""
    return InputError(f"{path}: not a whole safetensors file ({error}); fetch or copy it again")


class StoredTensors(Mapping[str, Any]):
    """The tensors in the bytes of a safetensors file, and the weights of another one where this file has none. They are
    checked at once, by NumPy, and become torch's tensors at the first access: a network that was converted before needs
    no torch.

    Raises InputError for a damaged file, a number type that torch lacks, NaN and infinity. A network with one NaN gives
    one label everywhere, at an entropy of 0.
    """

    def __init__(self, data: bytes, path: Path, weights: "StoredTensors | None" = None) -> None:
        from safetensors import SafetensorError, deserialize

        self._data, self._weights = data, weights
        try:
            stored = deserialize(data)  # type: ignore[no-untyped-call]
        except (SafetensorError, ValueError, OverflowError) as error:
            raise not_whole(path, error) from error
        for name, tensor in stored:
            if tensor["dtype"] not in (*INTEGERS, *EXPONENTS):
                raise not_whole(path, f"{name} has the number type {tensor['dtype']}")
            if not _is_finite(tensor["data"], tensor["dtype"]):
                raise InputError(f"{path}: tensor {name} holds NaN or infinite values; fetch or train it again")

    @cached_property
    def _loaded(self) -> "dict[str, Tensor]":
        from safetensors.torch import load

        return ({} if self._weights is None else weights_alone(self._weights)) | load(self._data)

    @cached_property
    def arrays(self) -> dict[str, np.ndarray]:
        from safetensors.numpy import load

        return ({} if self._weights is None else weights_alone(self._weights.arrays)) | load(self._data)

    def __getitem__(self, name: str) -> "Tensor":
        return self._loaded[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._loaded)

    def __len__(self) -> int:
        return len(self._loaded)


def _is_finite(data: bytes, kind: str) -> bool:
    """False if a floating-point number has all bits of its exponent set."""
    if kind not in EXPONENTS:
        return True
    number, exponent = EXPONENTS[kind]
    bits = np.frombuffer(data, number) & number(exponent)
    return not bits.size or bool(bits.max() < exponent)
