"""Converted networks on disk: a conversion by torch.export and OpenVINO takes 10 to 20 CPU seconds, reading takes none.

A file's name is a digest: of the checkpoint, the requested network, our code and the versions of the libraries. The
file lies in the user's cache, or in the folder that STEADYSEG_CACHE names. This module needs no torch.
"""

import contextlib
import functools
import hashlib
import json
import sys
import tempfile
from collections.abc import Callable
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from steadyseg.core.system.files import cache_file, write_atomic
from steadyseg.export.run.sessions import openvino_core

FOLDER = "converted"
MAX_KEPT = 24
"""Number of files: networks of a few methods and sizes, 2 to 30 MB each. The least recently used file goes first."""
LIBRARIES = ("openvino", "torch", "torchvision", "segmentation_models_pytorch", "timm")
DIGEST_BYTES = 32
DIGITS = 16
"""A file's name begins with this many digits of the checkpoint's digest."""
LENGTH_BYTES = 8
_told: set[str] = set()


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


def tell_once(line: str) -> None:
    """Prints a line to stderr, once in a process."""
    if line not in _told:
        _told.add(line)
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


@functools.cache
def code_digest() -> bytes:
    """Digest of the sources of this package and of the versions of the libraries."""
    digest = hashlib.sha256()
    for name in LIBRARIES:
        with contextlib.suppress(PackageNotFoundError):
            digest.update(f"{name} {version(name)}\n".encode())
    root = Path(__file__).parents[2]
    for folder in ("core", "seg", "classification", "export", "app"):
        for path in sorted((root / folder).rglob("*.py")):
            digest.update(path.read_bytes())
    return digest.digest()
