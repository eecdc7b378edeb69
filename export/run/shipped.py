"""Graphs that come with a checkpoint, without its weights a second time: the first start needs no conversion.

`NAME.graphs` is a ZIP file beside `NAME.safetensors`. A graph is OpenVINO's XML, and a recipe for each constant. A
constant is stored as it is, or made of a tensor of the checkpoint: as it is, with scaled rows, or rounded to int8. The
bytes equal the conversion's; `studies/harness/graphs.py` writes and checks them.
"""

import json
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np

from steadyseg.core.model.int8_record import WEIGHT_LEVELS
from steadyseg.export.run.converted import Converted, read_ir

SUFFIX = ".graphs"
INDEX, SMALL = "index.json", "small.bin"
Arrays = Mapping[str, np.ndarray]
"""The tensors of a checkpoint by name."""


class Recipe(NamedTuple):
    """How the bytes of a constant are made."""

    kind: Literal["bytes", "tensor", "scaled", "rounded"]
    start: int
    """Offset in the small bytes: of the constant, of the factors, or of the corrections."""
    size: int
    """Their number of bytes."""
    tensor: str = ""
    """Name of the checkpoint's tensor."""


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

    def read(self, name: str, tensors: Arrays) -> Converted:
        """Returns the network of that name, with the tensors of its checkpoint."""
        graph = self._index[name]
        with zipfile.ZipFile(self._file) as archive:
            small = archive.read(SMALL)
            models = [
                read_ir(archive.read(xml), b"".join(constant(Recipe(*one), tensors, small) for one in recipes))
                for xml, recipes in graph["models"]
            ]
        return Converted(models, graph["rates"], [tuple(shape) for shape in graph["shapes"]])


def constant(recipe: Recipe, tensors: Arrays, small: bytes) -> bytes:
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
