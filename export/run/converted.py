"""Converted networks on disk: torch.export and OpenVINO take 10 to 20 CPU seconds, reading takes none of them.

A file is found by a digest of the module, the example's shapes, our code and the versions of the libraries. It lies in
the user's cache, or in the folder that STEADYSEG_CACHE names.
"""

import contextlib
import functools
import hashlib
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from enum import Enum
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from types import BuiltinFunctionType, FunctionType
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.utils.hooks import RemovableHandle

from steadyseg.core.system.files import cache_file, write_atomic
from steadyseg.export.run.sessions import openvino_core

FOLDER = "converted"
MAX_KEPT = 24
"""Files kept: the networks of a few methods and sizes, 2 to 30 MB each. The least recently used one makes room."""
LIBRARIES = ("openvino", "torch", "torchvision", "segmentation_models_pytorch", "timm")
KNOWN = {*LIBRARIES, "steadyseg", "builtins", "collections", "functools", "operator"}
"""Packages whose code the key stands for. A network of a user's own file may change without a change of its values."""
DIGEST_BYTES = 32
LENGTH_BYTES = 8
PLAIN = (type(None), bool, int, float, str, bytes, torch.dtype, torch.device, torch.Size, slice, range)


class Unknown(Exception):
    """Raised for a module with an attribute or code that has no digest: such a module is converted every time."""


def kept(module: nn.Module, example: Sequence[Tensor], convert: Callable[[], Any]) -> Any:
    """Returns an OpenVINO model from the cache, or converts the module and keeps the result.

    Where the cache cannot be read or written, the module is converted. A file that is damaged is made again.
    """
    try:
        path = cache_file(f"{FOLDER}/{key(module, example)}")
    except Unknown:
        return convert()
    with contextlib.suppress(OSError, ValueError):
        found = unpack(path.read_bytes())
        path.touch()
        return found
    data = pack(convert())
    with contextlib.suppress(OSError):
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        write_atomic(path, data)
        drop_old(path.parent)
    return unpack(data)  # OpenVINO rounds a model that was read otherwise than the one that was written


def pack(model: Any) -> bytes:
    """The bytes of a file: SHA-256 of the rest, length of the description, description, weights."""
    import openvino

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.xml"
        openvino.serialize(model, path)
        xml, weights = path.read_bytes(), path.with_suffix(".bin").read_bytes()
    body = len(xml).to_bytes(LENGTH_BYTES, "big") + xml + weights
    return hashlib.sha256(body).digest() + body


def unpack(data: bytes) -> Any:
    """The model of a file. Raises ValueError if the file is damaged."""
    core = openvino_core()
    import openvino

    digest, body = data[:DIGEST_BYTES], data[DIGEST_BYTES:]
    if hashlib.sha256(body).digest() != digest:
        raise ValueError("the file is damaged")
    length = int.from_bytes(body[:LENGTH_BYTES], "big")
    weights = np.frombuffer(body, np.uint8)[LENGTH_BYTES + length :].copy()
    return core.read_model(body[LENGTH_BYTES:][:length], openvino.Tensor(weights))


def drop_old(folder: Path) -> None:
    """Removes the least recently used files beyond `MAX_KEPT`."""
    by_age = sorted(folder.iterdir(), key=lambda path: path.stat().st_mtime, reverse=True)
    for path in by_age[MAX_KEPT:]:
        path.unlink(missing_ok=True)


def key(module: nn.Module, example: Sequence[Tensor]) -> str:
    """Hex digest of all that the converted network depends on. Raises Unknown."""
    digest = hashlib.sha256(code_digest())
    for tensor in example:
        digest.update(f"{tensor.dtype}{tuple(tensor.shape)}".encode())
    for part in parts(module):
        digest.update(part)
        digest.update(b"\0")
    return digest.hexdigest()


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


def parts(value: Any, seen: dict[int, int] | None = None) -> Iterator[bytes]:
    """Yields bytes that stand for a value and all that it holds. A tensor counts by content, a function by name and
    closure, another object by class and state. `seen` numbers the objects, which may hold one another."""
    seen = {} if seen is None else seen
    if isinstance(value, PLAIN):
        yield repr(value).encode()
    elif isinstance(value, Tensor):
        yield f"{value.dtype}{tuple(value.shape)}".encode()
        yield value.detach().cpu().contiguous().view(-1).view(torch.uint8).numpy().tobytes()
    elif isinstance(value, Mapping):
        yield from parts([pair for pair in value.items()], seen)
    elif isinstance(value, Set):
        yield from sorted(b"".join(parts(one, seen)) for one in value)
    elif isinstance(value, Sequence):
        yield f"{len(value)}".encode()
        for one in value:
            yield from parts(one, seen)
    elif isinstance(value, RemovableHandle):  # its number counts the hooks of the whole process
        yield b"handle"
    elif isinstance(value, type | FunctionType | BuiltinFunctionType | Enum):
        yield named(value)
        yield from parts([cell.cell_contents for cell in getattr(value, "__closure__", None) or ()], seen)
    elif id(value) in seen:
        yield f"object {seen[id(value)]}".encode()
    else:
        seen[id(value)] = len(seen)
        yield from (named(type(value)), *parts(state(value), seen))


def state(value: Any) -> Any:
    """What a module or another object holds. Raises Unknown for an object that cannot be pickled."""
    if isinstance(value, nn.Module):
        held = dict(vars(value))
        # Hooks are keyed by numbers of the whole process; a module without hooks may hold None.
        hooks = [name for name in held if name.endswith("_hooks")]
        return held | {name: [*(held[name] or {}).values()] for name in hooks}
    try:
        return value.__reduce_ex__(2)[1:]
    except TypeError as error:
        raise Unknown(str(error)) from error


def named(value: Any) -> bytes:
    """The full name of a class, a function or a member of an Enum. Raises Unknown for code of other packages."""
    owner = type(value) if isinstance(value, Enum) else value
    name = f"{owner.__module__}.{owner.__qualname__}"
    if name.split(".")[0] not in KNOWN:
        raise Unknown(f"the code of {name} may change")
    return f"{name}.{value.name}".encode() if isinstance(value, Enum) else name.encode()
