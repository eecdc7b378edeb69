"""Converted networks on disk: a conversion by torch.export and OpenVINO takes 10 to 20 CPU seconds, reading takes none.

A file's name is a digest: of the checkpoint, the requested network, our code and the versions of the libraries. The
file lies in the user's cache, or in the folder that STEADYSEG_CACHE names. This module needs no torch.
"""

import contextlib
import errno
import functools
import hashlib
import json
import os
import re
import stat
import sys
import tempfile
from collections.abc import Callable
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from steadyseg.core.errors import InputError
from steadyseg.core.system.files import cache_file, is_private, no_link, write_atomic
from steadyseg.core.system.json_text import parse_json
from steadyseg.core.system.telling import telling
from steadyseg.export.file.sessions import openvino_core, runtime_errors

FOLDER = "converted"
MAX_KEPT = 24
"""Number of files: networks of a few methods and sizes, 2 to 30 MB each. The least recently used file goes first."""
LIBRARIES = ("openvino", "torch", "torchvision", "segmentation_models_pytorch", "timm")
SOURCES = (
    *("core/*.py", "core/familiarity/*.py", "core/model/*.py", "seg/networks/*.py"),
    *("seg/any_network.py", "seg/of_model.py", "seg/streaming.py", "runtime/conversion.py", "runtime/converted.py"),
)
"""The files whose code a converted network is made of."""
DIGEST_BYTES = 32
DIGITS = 16
"""A file's name begins with this many digits of the checkpoint's digest."""
OUR_NAME = re.compile(
    rf"[0-9a-f]{{{DIGITS}}}-[0-9a-f]{{64}}|\.[0-9a-f]{{{DIGITS}}}-[0-9a-f]{{64}}\.[0-9a-f]{{8}}\.partial"
)
"""Names of `file_key`, and of the partial files that a killed process leaves."""
LENGTH_BYTES = 8


class Converted(NamedTuple):
    """A network as one OpenVINO model, or as two: the part that all dropout passes share, and the rest."""

    models: list[Any]
    rates: list[float]
    """Dropout rates of the masks, which are the last inputs of the last model."""
    mask_shapes: list[tuple[int, ...]]


Check = Callable[[Converted], None]


def kept(key: str | None, convert: Callable[[], Converted], check: Check = lambda network: None) -> Converted:
    """Returns a network from the cache, or converts it and keeps the result; without a key nothing is kept.

    Where the cache cannot be read or written, or another user may write there, the network is converted. A file that is
    damaged, or that `check` refuses by an InputError, is made again.
    """
    convert = telling("converts the network ...")(convert)
    if key is None:
        return convert()
    path, is_ours = cache_file(f"{FOLDER}/{key}"), False
    with contextlib.suppress(OSError, InputError):
        is_ours = is_private(path.parent)
        if is_ours:
            with open(path, "rb", opener=no_link) as file:
                found = unpack(file.read(), key)
                check(found)
                os.utime(path)
            return found
    data = pack(convert(), key)
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        if not is_private(path.parent):
            raise PermissionError(errno.EPERM, "it must be a folder, no link, that this user alone may enter")
        write_atomic(path, data)
        drop_old(path.parent)
    except OSError as error:
        tell_once(f"note: no converted network can be kept in {path.parent} ({error.strerror}); each start converts")
    return unpack(data, key)  # not the model that was written: OpenVINO rounds it differently from one that it read


@functools.cache
def tell_once(line: str) -> None:
    """Prints a line to stderr, once in a process."""
    print(line, file=sys.stderr)


def pack(network: Converted, key: str = "") -> bytes:
    """The bytes of a file: SHA-256 of its name `key` and the rest, length of the description, description, XML and
    weights of each model."""
    parts = [part for model in network.models for part in write_ir(model)]
    about = json.dumps(
        {"rates": network.rates, "shapes": network.mask_shapes, "lengths": [len(part) for part in parts]}
    ).encode()
    body = b"".join((len(about).to_bytes(LENGTH_BYTES, "big"), about, *parts))
    return hashlib.sha256(key.encode() + body).digest() + body


def unpack(data: bytes, key: str = "") -> Converted:
    """The network of a file of the name `key`. Raises InputError if the file is damaged or has another name's bytes."""
    digest, body = data[:DIGEST_BYTES], data[DIGEST_BYTES:]
    with runtime_errors("the file is damaged"):
        if hashlib.sha256(key.encode() + body).digest() != digest:
            raise ValueError("another digest")
        start = LENGTH_BYTES + int.from_bytes(body[:LENGTH_BYTES], "big")
        about, parts = parse_json(body[LENGTH_BYTES:start]), list[bytes]()
        for length in about["lengths"]:
            parts.append(body[start : start + length])
            start += length
        models = [read_ir(*pair) for pair in zip(parts[::2], parts[1::2], strict=True)]
        return Converted(models, about["rates"], [tuple(shape) for shape in about["shapes"]])


def require_shapes(network: Converted, height: int, width: int, classes: int) -> None:
    """Raises InputError unless the network takes (1, height, width, 3) uint8 and masks, and gives `classes` logits."""
    with runtime_errors("the network is another one"):
        from openvino import PartialShape

        first, last = network.models[0], network.models[-1]
        handed = [] if first is last else first.outputs
        masks = [PartialShape([*shape]) for shape in network.mask_shapes]
        wanted = [one.partial_shape for one in handed] or [PartialShape([1, height, width, 3])]
        if (
            len(network.models) > 2
            or not first.input(0).partial_shape.compatible(PartialShape([1, height, width, 3]))
            or not all(
                one.partial_shape.compatible(shape) for one, shape in zip(last.inputs, wanted + masks, strict=True)
            )
            or last.output(0).partial_shape[1] != classes
            or len(network.rates) != len(masks)
            or not all(0 <= rate <= 255 / 256 for rate in network.rates)
        ):
            raise ValueError("it has other inputs or outputs")


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
    """Removes the least recently used files beyond `MAX_KEPT`: files of our names alone, and no links."""
    by_age = list[tuple[float, Path]]()
    for path in folder.iterdir():
        with contextlib.suppress(FileNotFoundError):  # another process may remove it
            if OUR_NAME.fullmatch(path.name) and stat.S_ISREG(path.lstat().st_mode):
                by_age.append((path.lstat().st_mtime, path))
    for _, path in sorted(by_age, reverse=True)[MAX_KEPT:]:
        path.unlink(missing_ok=True)


def file_key(checkpoint: str, *parts: object) -> str:
    """The name of a file: digits of the checkpoint's digest, then a digest of checkpoint, parts, code and libraries."""
    return f"{checkpoint[:DIGITS]}-{hashlib.sha256(code_digest() + repr((checkpoint, *parts)).encode()).hexdigest()}"


def was_kept(checkpoint: str) -> bool:
    """True if a network of the checkpoint lies in the cache."""
    with contextlib.suppress(OSError):
        return any(name.startswith(f"{checkpoint[:DIGITS]}-") for name in os.listdir(cache_file(FOLDER)))
    return False


def is_kept(checkpoint: str, name: str) -> bool:
    """True if the network `name` of the checkpoint lies in the cache."""
    return os.path.isfile(cache_file(f"{FOLDER}/{file_key(checkpoint, name)}"))  # pathlib's raises for a long name


@functools.cache
def code_digest() -> bytes:
    """Digest of the sources that make a converted network, and of the versions of the libraries."""
    digest = hashlib.sha256()
    for name in LIBRARIES:
        with contextlib.suppress(PackageNotFoundError):
            digest.update(f"{name} {version(name)}\n".encode())
    root = Path(__file__).parents[1]
    for path in sorted(path for pattern in SOURCES for path in root.glob(pattern)):
        digest.update(path.read_bytes())
    return digest.digest()
