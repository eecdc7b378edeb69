"""The graphs that come with a checkpoint.

The included networks come with their graphs, so that the first start needs no conversion. `NAME.graphs` is a ZIP file
beside `NAME.safetensors`, without the weights a second time. A graph is OpenVINO's XML, and a recipe for each constant.
A constant is stored as it is, or made of a tensor of the checkpoint: as it is, with scaled rows, or rounded to int8.
The bytes equal the conversion's; `studies/harness/graphs.py` writes and checks them. Graphs beside a checkpoint of
another folder are not read.
"""

import contextlib
import hashlib
import json
import os
import re
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np

from steadyseg.core.errors import in_line
from steadyseg.core.model.int8_record import WEIGHT_LEVELS
from steadyseg.core.system.json_text import parse_json
from steadyseg.runtime.converted import LENGTH_BYTES, Check, Converted, read_ir, tell_once

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
            with self._archive() as archive:
                small = member(archive, SMALL, MAX_SMALL_BYTES)
                for (file, recipes), digest in zip(graph["models"], graph["digests"], strict=True):
                    xml = member(archive, file, MAX_TEXT_BYTES)
                    weights = constants([Recipe(*one) for one in recipes], tensors, small)
                    if digest != graph_digest(xml, weights, [name, graph["rates"], graph["shapes"]]):
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


def graph_digest(xml: bytes, weights: bytes, about: Sequence[Any]) -> str:
    """SHA-256 of a graph, the bytes of its constants, and what the index says `about` its network: the name, and the
    rates and shapes of the dropout masks."""
    told = json.dumps(about).encode()
    sizes = b"".join(len(part).to_bytes(LENGTH_BYTES, "big") for part in (xml, told))
    return hashlib.sha256(sizes + xml + told + weights).hexdigest()


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
