"""Converted networks on disk: a conversion by torch.export and OpenVINO takes 10 to 20 CPU seconds, reading takes none.

A file's name is a digest: of the checkpoint, the requested network, our code and the versions of the libraries. The
file lies in the user's cache, or in the folder that STEADYSEG_CACHE names. This module needs no torch.

The included networks come with their graphs, so that the first start needs no conversion. `NAME.graphs` is a ZIP file
beside `NAME.safetensors`, without the weights a second time. A graph is OpenVINO's XML, and a recipe for each constant.
A constant is stored as it is, or made of a tensor of the checkpoint: as it is, with scaled rows, or rounded to int8.
The bytes equal the conversion's; `studies/harness/graphs.py` writes and checks them.
"""

import contextlib
import functools
import hashlib
import json
import sys
import tempfile
import zipfile
from collections.abc import Callable, Iterator, Mapping
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np

from steadyseg.core.model.int8_record import WEIGHT_LEVELS
from steadyseg.core.system.files import cache_file, write_atomic
from steadyseg.export.file.sessions import openvino_core

FOLDER = "converted"
MAX_KEPT = 24
"""Number of files: networks of a few methods and sizes, 2 to 30 MB each. The least recently used file goes first."""
LIBRARIES = ("openvino", "torch", "torchvision", "segmentation_models_pytorch", "timm")
DIGEST_BYTES = 32
DIGITS = 16
"""A file's name begins with this many digits of the checkpoint's digest."""
LENGTH_BYTES = 8


class Converted(NamedTuple):
    """A network as one OpenVINO model, or as two: the part that all dropout passes share, and the rest."""

    models: list[Any]
    rates: list[float]
    """Dropout rates of the masks, which are the last inputs of the last model."""
    mask_shapes: list[tuple[int, ...]]


def kept(key: str | None, convert: Callable[[], Converted]) -> Converted:
    """Returns a network from the cache, or converts it and keeps the result; without a key nothing is kept.

    Where the cache cannot be read or written, the network is converted. A file that is damaged is made again.
    """
    if key is None:
        return convert()
    path = cache_file(f"{FOLDER}/{key}")
    with contextlib.suppress(OSError, ValueError):
        found = unpack(path.read_bytes())
        path.touch()
        return found
    data = pack(convert())
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        write_atomic(path, data)
        drop_old(path.parent)
    except OSError as error:
        tell_once(f"note: no converted network can be kept in {path.parent} ({error.strerror}); each start converts")
    return unpack(data)  # not the model that was written: OpenVINO rounds it differently from one that it read


@functools.cache
def tell_once(line: str) -> None:
    """Prints a line to stderr, once in a process."""
    print(line, file=sys.stderr)


def pack(network: Converted) -> bytes:
    """The bytes of a file: SHA-256 of the rest, length of the description, description, and each model's XML and
    weights."""
    parts = [part for model in network.models for part in write_ir(model)]
    about = json.dumps(
        {"rates": network.rates, "shapes": network.mask_shapes, "lengths": [len(part) for part in parts]}
    ).encode()
    body = b"".join((len(about).to_bytes(LENGTH_BYTES, "big"), about, *parts))
    return hashlib.sha256(body).digest() + body


def unpack(data: bytes) -> Converted:
    """The network of a file. Raises ValueError if the file is damaged."""
    digest, body = data[:DIGEST_BYTES], data[DIGEST_BYTES:]
    if hashlib.sha256(body).digest() != digest:
        raise ValueError("the file is damaged")
    start = LENGTH_BYTES + int.from_bytes(body[:LENGTH_BYTES], "big")
    about, parts = json.loads(body[LENGTH_BYTES:start]), list[bytes]()
    for length in about["lengths"]:
        parts.append(body[start : start + length])
        start += length
    models = [read_ir(*pair) for pair in zip(parts[::2], parts[1::2], strict=True)]
    return Converted(models, about["rates"], [tuple(shape) for shape in about["shapes"]])


def write_ir(model: Any) -> tuple[bytes, bytes]:
    """The description of an OpenVINO model in XML, and the bytes that its constants point into."""
    import openvino

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.xml"
        openvino.serialize(model, path)
        return path.read_bytes(), path.with_suffix(".bin").read_bytes()


def read_ir(xml: bytes, weights: bytes) -> Any:
    """The OpenVINO model of a description and the bytes that its constants point into."""
    core = openvino_core()
    import openvino

    return core.read_model(xml, openvino.Tensor(np.frombuffer(weights, np.uint8).copy()))


def drop_old(folder: Path) -> None:
    """Removes the least recently used files beyond `MAX_KEPT`."""
    by_age = sorted(folder.iterdir(), key=lambda path: path.stat().st_mtime, reverse=True)
    for path in by_age[MAX_KEPT:]:
        path.unlink(missing_ok=True)


def file_key(checkpoint: str, *parts: object) -> str:
    """The name of a file: digits of the checkpoint's digest, then a digest of checkpoint, parts, code and libraries."""
    return f"{checkpoint[:DIGITS]}-{hashlib.sha256(code_digest() + repr((checkpoint, *parts)).encode()).hexdigest()}"


def was_kept(checkpoint: str) -> bool:
    """True if a network of the checkpoint lies in the cache."""
    return any(cache_file(FOLDER).glob(f"{checkpoint[:DIGITS]}-*"))


def is_kept(checkpoint: str, name: str) -> bool:
    """True if the network `name` of the checkpoint lies in the cache."""
    return cache_file(f"{FOLDER}/{file_key(checkpoint, name)}").is_file()


@functools.cache
def code_digest() -> bytes:
    """Digest of the sources that make a converted network, and of the versions of the libraries."""
    digest = hashlib.sha256()
    for name in LIBRARIES:
        with contextlib.suppress(PackageNotFoundError):
            digest.update(f"{name} {version(name)}\n".encode())
    root = Path(__file__).parents[1]
    for folder in ("core", "seg", "runtime"):
        for path in sorted((root / folder).rglob("*.py")):
            digest.update(path.read_bytes())
    return digest.digest()


SUFFIX = ".graphs"
INDEX, SMALL = "index.json", "small.bin"
Tensors = Mapping[str, np.ndarray]
"""The tensors of a checkpoint by name."""


class Recipe(NamedTuple):
    """How the bytes of a constant are made."""

    kind: Literal["bytes", "tensor", "scaled", "rounded"]
    start: int
    """Offset in the small bytes: of the constant, of the factors, or of the corrections."""
    size: int
    """Their number of bytes."""
    tensor: str = ""
    """Name of the tensor in the checkpoint."""


class ShippedGraphs:
    """The graphs of a checkpoint, by the description of the network that is asked for."""

    def __init__(self, checkpoint: Path, sha256: str) -> None:
        self._file = checkpoint.with_suffix(SUFFIX)
        self._index: Mapping[str, Any] = {}
        if self._file.is_file():
            with zipfile.ZipFile(self._file) as archive:
                index = json.loads(archive.read(INDEX))
            if index["checkpoint"] == sha256:  # else the graphs are of other weights
                self._index = index["graphs"]

    def __bool__(self) -> bool:
        return bool(self._index)

    def __contains__(self, name: str) -> bool:
        return name in self._index

    def __iter__(self) -> Iterator[str]:
        return iter(self._index)

    def read(self, name: str, tensors: Tensors) -> Converted:
        """Returns the network `name`; `tensors` are the tensors of the checkpoint."""
        graph = self._index[name]
        with zipfile.ZipFile(self._file) as archive:
            small = archive.read(SMALL)
            models = [
                read_ir(archive.read(xml), b"".join(constant(Recipe(*one), tensors, small) for one in recipes))
                for xml, recipes in graph["models"]
            ]
        return Converted(models, graph["rates"], [tuple(shape) for shape in graph["shapes"]])


def constant(recipe: Recipe, tensors: Tensors, small: bytes) -> bytes:
    """Returns the bytes of a constant."""
    own = small[recipe.start : recipe.start + recipe.size]
    if recipe.kind == "bytes":
        return own
    weights = tensors[recipe.tensor].astype(np.float32)
    if recipe.kind == "tensor":
        return weights.tobytes()
    rows = weights.reshape(len(weights), -1)
    if recipe.kind == "scaled":
        return (rows * np.frombuffer(own, np.float32)[:, None]).tobytes()
    return corrected(rounded(rows), own).tobytes()


def rounded(rows: np.ndarray) -> np.ndarray:
    """The weights as `core.model.int8.Int8Conv` rounds them, to int8; a few may differ by one."""
    scale = np.maximum(np.abs(rows).max(1) / np.float32(WEIGHT_LEVELS), np.float32(1e-8))
    return np.clip(np.rint(rows * (np.float32(1.0) / scale)[:, None]), -128, 127).astype(np.int8)


def corrected(values: np.ndarray, corrections: bytes) -> np.ndarray:
    """Replaces single values. `corrections`: pairs of int32, a place and its value."""
    pairs = np.frombuffer(corrections, np.int32).reshape(-1, 2)
    flat = values.ravel()
    flat[pairs[:, 0]] = pairs[:, 1]
    return flat
