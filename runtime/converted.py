"""Converted networks on disk: a conversion by torch.export and OpenVINO takes 10 to 20 CPU seconds, reading takes none.

A file's name is a digest: of the checkpoint, the requested network, our code and the versions of the libraries. The
file lies in the user's cache, or in the folder that STEADYSEG_CACHE names. This module needs no torch.

The included networks come with their graphs, so that the first start needs no conversion. `NAME.graphs` is a ZIP file
beside `NAME.safetensors`, without the weights a second time. A graph is OpenVINO's XML, and a recipe for each constant.
A constant is stored as it is, or made of a tensor of the checkpoint: as it is, with scaled rows, or rounded to int8.
The bytes equal the conversion's; `studies/harness/graphs.py` writes and checks them. Graphs beside a checkpoint of
another folder are not read.
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
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np

from steadyseg.core.errors import InputError, in_line
from steadyseg.core.model.int8_record import WEIGHT_LEVELS
from steadyseg.core.system.files import cache_file, is_private, no_link, write_atomic
from steadyseg.core.system.json_text import parse_json
from steadyseg.export.file.sessions import openvino_core, runtime_errors

FOLDER = "converted"
MAX_KEPT = 24
"""Number of files: networks of a few methods and sizes, 2 to 30 MB each. The least recently used file goes first."""
LIBRARIES = ("openvino", "torch", "torchvision", "segmentation_models_pytorch", "timm")
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
    for folder in ("core", "seg", "runtime"):
        for path in sorted((root / folder).rglob("*.py")):
            digest.update(path.read_bytes())
    return digest.digest()


SUFFIX = ".graphs"
INDEX, SMALL = "index.json", "small.bin"
Tensors = Mapping[str, np.ndarray]
"""The tensors of a checkpoint by name."""
MAX_TEXT_BYTES, MAX_SMALL_BYTES = 2**23, 2**27
"""Limits of the index and of a graph (0.2 to 0.4 MB), and of the small bytes and the whole file (some MB)."""
GRAPH_NAME = re.compile(r"[a-z0-9 ]+ [1-9][0-9]{0,4}x[1-9][0-9]{0,4}")
OPERATORS = frozenset(
    "Abs Add AvgPool Broadcast Clamp Concat Const Constant Convert Convolution ConvolutionBackpropData DepthToSpace "
    "Divide Elu Erf Exp FakeQuantize Floor Gather Gelu GroupConvolution GroupConvolutionBackpropData HSigmoid "
    "HSwish Interpolate Log LogSoftmax MVN MatMul MaxPool Maximum Minimum Mish Multiply Negative NormalizeL2 PRelu "
    "Pad Parameter Power ReLU Relu ReduceMax ReduceMean ReduceSum Reshape Result ShapeOf Sigmoid Slice SoftPlus "
    "Softmax Split Sqrt Squeeze StridedSlice Subtract Swish Tanh Tile Transpose Unsqueeze VariadicSplit".split()
)
"""Arithmetic alone, without loops, branches, state and text: more than today's networks use."""


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
    """The graphs of a checkpoint, by the description of the network that is asked for.

    A damaged file is told in one line, and counts as absent.
    """

    def __init__(self, checkpoint: Path, sha256: str) -> None:
        self._file = checkpoint.with_suffix(SUFFIX)
        self._index: Mapping[str, Any] = {}
        with self._as_absent():
            if os.path.isfile(self._file):
                with self._archive() as archive:
                    index = parse_json(member(archive, INDEX, MAX_TEXT_BYTES))
                if index["checkpoint"] == sha256:  # else the graphs are of other weights
                    self._index = {name: one for name, one in index["graphs"].items() if GRAPH_NAME.fullmatch(name)}

    def __bool__(self) -> bool:
        return bool(self._index)

    def __contains__(self, name: str) -> bool:
        return name in self._index

    def __iter__(self) -> Iterator[str]:
        return iter(self._index)

    def read(self, name: str, tensors: Tensors, check: Check = lambda network: None) -> Converted | None:
        """Returns the network `name`; `tensors` are the tensors of the checkpoint. None if the file is damaged, or if
        `check` refuses the network by an InputError."""
        with self._as_absent():
            graph, models = self._index[name], list[Any]()
            digests = graph.get("digests", [""] * len(graph["models"]))  # older files have none
            with self._archive() as archive:
                small = member(archive, SMALL, MAX_SMALL_BYTES)
                for (file, recipes), digest in zip(graph["models"], digests, strict=True):
                    xml = member(archive, file, MAX_TEXT_BYTES)
                    weights = constants([Recipe(*one) for one in recipes], tensors, small)
                    if digest not in ("", graph_digest(xml, weights)):
                        raise ValueError("a graph has another digest")
                    models.append(read_ir(xml, weights))
            kinds = {one.get_type_name() for model in models for one in model.get_ops()}
            if kinds - OPERATORS:
                raise ValueError(f"{', '.join(sorted(kinds - OPERATORS))}: no operator of our networks")
            network = Converted(models, graph["rates"], [tuple(shape) for shape in graph["shapes"]])
            check(network)
            return network
        return None

    def _archive(self) -> zipfile.ZipFile:
        if self._file.stat().st_size > MAX_SMALL_BYTES:
            raise ValueError(f"more than {MAX_SMALL_BYTES} bytes")
        return zipfile.ZipFile(self._file)

    @contextlib.contextmanager
    def _as_absent(self) -> Iterator[None]:
        try:
            yield
        except Exception as error:  # of zipfile, zlib, struct, json, OpenVINO ...; no class is common to all
            self._index = {}
            tell_once(f"note: {self._file} is damaged ({in_line(error)[:200]}); the network is converted instead")


def member(archive: zipfile.ZipFile, name: str, limit: int) -> bytes:
    """The bytes of a member. ValueError beyond a limit, and for a method whose decoder may exceed the claimed size."""
    info = archive.getinfo(name)
    if info.file_size > limit or info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        raise ValueError(f"{name} has {info.file_size} bytes, at most {limit} are read, stored or deflated")
    return archive.read(info)


def graph_digest(xml: bytes, weights: bytes) -> str:
    """SHA-256 of a graph and the bytes of its constants."""
    return hashlib.sha256(len(xml).to_bytes(LENGTH_BYTES, "big") + xml + weights).hexdigest()


def constants(recipes: Sequence[Recipe], tensors: Tensors, small: bytes) -> bytes:
    """Returns the bytes of all constants. ValueError where they are more than the checkpoint could fill."""
    left = 2 * (len(small) + sum(4 * one.size for one in tensors.values()))
    parts = list[bytes]()
    for recipe in recipes:
        parts.append(constant(recipe, tensors, small))
        left -= len(parts[-1])
        if left < 0:
            raise ValueError("its constants are larger than the weights")
    return b"".join(parts)


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
