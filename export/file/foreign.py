"""Reads segmentation graphs of other programs: finds the picture input, its layout and size, and the output."""

import copy
import hashlib
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from steadyseg.core.errors import InputError
from steadyseg.export.file.child import run_limited
from steadyseg.export.file.metadata import MAX_SIDE
from steadyseg.export.file.onnx_file import import_onnx, parse_foreign, read_bytes
from steadyseg.export.file.signature import Shape, type_and_shape
from steadyseg.export.file.sizes import check_sizes

if TYPE_CHECKING:
    from onnx import ModelProto, ValueInfoProto

FOLDED = frozenset(("CastLike", "Constant", "Dropout", "EyeLike", "Size"))
"""Operators that only a foreign graph may contain: when it is wrapped, ONNX Runtime replaces them by constants or
removes them."""


@dataclass(frozen=True)
class ForeignGraph:
    """A graph that passed the checks of `read_foreign`."""

    path: Path
    data: bytes = field(repr=False)
    """The whole file, as it was read."""
    sha256: str
    model: "ModelProto" = field(repr=False)
    """The graph with its input of a fixed size, its first output alone, and operators of the version asked for."""
    input: str
    """Name of the input, a normalised picture."""
    output: str
    """Name of the output."""
    channels_last: bool
    """True if the input is (1, h, w, 3), False if it is (1, 3, h, w)."""
    size: tuple[int, int]
    """(h, w) of the input."""
    notes: tuple[str, ...]
    """Sentences about the parts of the file that are not used."""


def read_foreign(path: Path, size: tuple[int, int] | None, opset: int) -> ForeignGraph:
    """Reads an ONNX file of another program; `size` (h, w) fixes an input whose size is free.

    `opset`: version of the operators that the graph is converted to.

    The graph must have one picture input (1, 3, h, w) or (1, h, w, 3) of float32. InputError in one line for any other
    graph, and if it could read other files, run other code or take all memory.
    """
    onnx = import_onnx()
    data = read_bytes(path)
    model = onnx.load_model_from_string(run_limited(prepare, data, str(path), *(size or (0, 0)), opset))
    picture, output = _picture(model, path), model.graph.output[0].name
    shape = type_and_shape(picture, str(path))[1]
    channels_last = _channels_last(shape, path)
    fixed = _size(shape[1:3] if channels_last else shape[2:], None, path)
    digest = hashlib.sha256(data).hexdigest()
    notes = tuple(
        f"output {value.name[:40]!r} was left out" for value in onnx.load_model_from_string(data).graph.output[1:]
    )
    return ForeignGraph(path, data, digest, model, picture.name, output, channels_last, fixed, notes)


def prepare(data: bytes, name: str, height: int, width: int, opset: int) -> bytes:
    """Checks a file and returns the graph of `ForeignGraph.model`, in the child; height 0 keeps the graph's own
    size."""
    path = Path(name)
    model = parse_foreign(data, path, FOLDED)
    graph = model.graph
    picture = copy.deepcopy(_picture(model, path))
    kind, shape = type_and_shape(picture, str(path))
    if drawn := [node.op_type for node in graph.node if node.op_type.startswith("Random")]:
        raise InputError(
            f"{path}: draws random numbers ({drawn[0]}), so that no two runs are equal; export the network without "
            "dropout"
        )
    if kind != "FLOAT":
        raise InputError(
            f"{path}: its input is {kind.lower()}, expected float32: a picture normalised by --mean and --std; export "
            "it in float32 and without its own normalisation"
        )
    channels_last = _channels_last(shape, path)
    size = _size(shape[1:3] if channels_last else shape[2:], (height, width) if height else None, path)
    fixed = (1, *size, 3) if channels_last else (1, 3, *size)
    if isinstance(shape[0], int) and shape[0] != 1:
        raise InputError(f"{path}: takes {shape[0]} pictures at once, expected 1; export it for one, or a free number")
    for axis, length in zip(picture.type.tensor_type.shape.dim, fixed, strict=True):
        axis.dim_value = length
    output = _without_sizes(graph.output[0])
    for name in ("input", "value_info", "output"):  # sizes that were free are inferred again
        del getattr(graph, name)[:]
    graph.input.append(picture)
    graph.output.append(output)
    model = _inferred(_converted(_inferred(model), opset, path))
    check_sizes(model, None, name)
    return model.SerializeToString()


def _picture(model: "ModelProto", path: Path) -> "ValueInfoProto":
    """Returns the one input that is no weight; InputError unless there is exactly one."""
    graph = model.graph
    stored = {tensor.name for tensor in graph.initializer}
    inputs = [value for value in graph.input if value.name not in stored]
    if len(inputs) != 1 or not graph.output:
        names = ", ".join(repr(value.name[:40]) for value in inputs[:8]) or "none"
        raise InputError(f"{path}: has {len(inputs)} inputs ({names}), expected one: a normalised picture")
    return inputs[0]


def _without_sizes(value: "ValueInfoProto") -> "ValueInfoProto":
    import onnx

    return onnx.helper.make_tensor_value_info(value.name, value.type.tensor_type.elem_type, None)


def _inferred(model: "ModelProto") -> "ModelProto":
    import onnx

    return onnx.shape_inference.infer_shapes(model)


def _converted(model: "ModelProto", opset: int, path: Path) -> "ModelProto":
    """Returns the graph with the operators of version `opset`; InputError where onnx cannot convert it."""
    import onnx

    version = max(entry.version for entry in model.opset_import if entry.domain in ("", "ai.onnx"))
    if version == opset:
        return model
    try:
        return onnx.version_converter.convert_version(model, opset)
    except Exception as error:  # onnx's C++ raises many classes
        reason = (str(error).strip() or type(error).__name__).splitlines()[-1][:200]
        raise InputError(
            f"{path}: onnx cannot convert its opset {version} to {opset} ({reason}); export it with opset {opset}"
        ) from error


def _channels_last(shape: Shape, path: Path) -> bool:
    """Finds the layout by the axis of the three colours; InputError if no axis or both axes can be it."""
    shown = ", ".join("?" if not isinstance(size, int) else str(size) for size in shape)
    found = [axis for axis in (1, 3) if len(shape) == 4 and shape[axis] == 3]
    if len(found) != 1:
        raise InputError(
            f"{path}: its input is [{shown}], expected a picture [1, 3, h, w] or [1, h, w, 3]; export it with its "
            "colour axis fixed"
        )
    return found == [3]


def _size(free: Shape, size: tuple[int, int] | None, path: Path) -> tuple[int, int]:
    """Returns (h, w): the graph's own, or `size` where it is free."""
    fixed = all(isinstance(length, int) and 0 < length <= MAX_SIDE for length in free)
    if size is None and not fixed:
        raise InputError(f"{path}: its height and width are free, so give the size to fix: --size HxW, as 384x512")
    if size is None:
        height, width = (int(length) for length in free if isinstance(length, int))
        return height, width
    for asked, has in zip(size, free, strict=True):
        if isinstance(has, int) and has > 0 and has != asked:
            raise InputError(
                f"{path}: works at {free[0]}x{free[1]} (height x width) alone, got --size {size[0]}x{size[1]}; omit "
                "it, or export the network for that size"
            )
    return size
