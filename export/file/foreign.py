"""Reads segmentation graphs of other programs: finds the picture input, its layout and size, and the outputs."""

import hashlib
import json
from dataclasses import dataclass, field
from pathlib import Path

import onnx
from onnx import ModelProto

from steadyseg.core.errors import InputError
from steadyseg.export.file.child import run_limited
from steadyseg.export.file.foreign_form import has_channels_last, picture_of, prepare, reduced, size_of
from steadyseg.export.file.onnx_file import MAX_BYTES, parse_whole, read_bytes
from steadyseg.export.file.signature import type_and_shape


@dataclass(frozen=True)
class ForeignGraph:
    """A graph that passed the checks of `read_foreign`."""

    path: Path
    data: bytes = field(repr=False)
    """The graph with its weights, in its own operators and with its free sizes."""
    sha256: str
    """Digest of the file, and of the file with its weights if they are kept apart."""
    model: ModelProto = field(repr=False)
    """The graph with its input of a fixed size, and operators of the version asked for."""
    input: str
    """Name of the input, a normalised picture."""
    outputs: tuple[str, ...]
    """Names of the outputs; none are labels."""
    channels_last: bool
    """True if the input is (1, h, w, 3), False if it is (1, 3, h, w)."""
    size: tuple[int, int]
    """(h, w) of the input."""
    levels: bool
    """True if the input takes levels 0..255."""
    notes: tuple[str, ...]
    """Sentences about the parts of the file that are not used."""
    thresholds: dict[str, float | None]
    """Constants that the labels of the file are cut at, by output; None where no labels are cut."""


def read_foreign(
    path: Path, size: tuple[int, int] | None, opset: int, output: str = "", bgr: bool = False
) -> ForeignGraph:
    """Reads an ONNX file of another program; `size` (h, w) fixes an input whose size is free.

    `opset`: version of the operators that the graph is converted to. `output`: name of the only output to keep. `bgr`:
    the network takes blue first; the graph that is read takes RGB and turns it.

    The graph must have one picture input (1, 3, h, w) or (1, h, w, 3) of float32, float16 or uint8. InputError in one
    line for any other graph, and if it could read other files, run other code or take all memory.
    """
    data, weights = read_bytes(path), b""
    if b"location" in data and (name := run_limited(name_of_weights, data, str(path)).decode()):
        weights = read_beside(path, name, MAX_BYTES - len(data))
    digest = hashlib.sha256(data + weights).hexdigest()
    whole = run_limited(reduced, data + weights, str(path), len(data), output, bgr)
    model = onnx.load_model_from_string(run_limited(prepare, whole, str(path), *(size or (0, 0)), opset))
    picture = picture_of(model, path)
    shape = type_and_shape(picture, str(path))[1]
    channels_last = has_channels_last(shape, path)
    fixed = size_of(shape[1:3] if channels_last else shape[2:], None, path)
    outputs = tuple(value.name for value in model.graph.output)
    found = json.loads(onnx.load_model_from_string(whole).doc_string)
    return ForeignGraph(path, whole, digest, model, picture.name, outputs, channels_last, fixed, **found)


def name_of_weights(data: bytes, name: str) -> bytes:
    """Returns the name of the one file that holds weights, in the child; nothing if all are in the graph."""
    entries = [entry for tensor in parse_whole(data, Path(name)).graph.initializer for entry in tensor.external_data]
    found = {entry.value for entry in entries if entry.key == "location"}
    if len(found) > 1:
        raise InputError(f"{name}: its weights are in {len(found)} files, expected one; export it with one")
    return next(iter(found), "").encode()


def read_beside(path: Path, name: str, limit: int) -> bytes:
    """Returns the bytes of the file of weights beside `path`; InputError for a link and for any other folder."""
    if name in (".", "..") or set(name) & set("/\\:\0"):
        raise InputError(
            f"{path}: keeps weights in {name[:80]!r}, which could be any file of this machine; expected the plain name "
            "of a file in the same folder: torch.onnx.export(..., external_data=False)"
        )
    beside = path.with_name(name)
    if beside.is_symlink():
        raise InputError(f"{beside}: a link, expected the file with the weights of {path.name}; copy it there")
    data = read_bytes(beside)
    if len(data) > limit:
        raise InputError(f"{path}: with {name}, it is larger than the {MAX_BYTES} bytes that are read")
    return data
