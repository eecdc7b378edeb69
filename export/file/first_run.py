"""The first run of a stranger's graph: one frame of zeros, in the child with limits of memory and time.

A graph of 300 bytes can ask for a terabyte, and a runtime's C++ can end its process. What one frame does, every frame
of that size does, since no size may depend on the values of pixels.
"""

from importlib.util import find_spec
from typing import TYPE_CHECKING

import numpy as np

from steadyseg.core.errors import InputError
from steadyseg.export.file.metadata import GraphMeta
from steadyseg.export.file.sessions import openvino_runner, runtime_errors, session_runner

if TYPE_CHECKING:
    from onnx import ModelProto, ValueInfoProto

SIZED = frozenset(
    (
        "Col2Im ConstantOfShape Expand Pad Range ReduceL1 ReduceL2 ReduceLogSumExp ReduceMax ReduceMean ReduceMin "
        "ReduceProd ReduceSum ReduceSumSquare Reshape Resize Slice Split Squeeze Tile TopK Unsqueeze"
    ).split()
)
"""Operators whose inputs after the first one decide about sizes, or, of `ConstantOfShape` and `Range`, all inputs."""


def refuse_varying_sizes(model: "ModelProto", name: str) -> None:
    """Raises InputError where the size of a tensor depends on pixels, states or random draws."""
    stored = {tensor.name for tensor in model.graph.initializer}
    varying = {value.name for value in model.graph.input} - stored
    for node in model.graph.node:
        deciding = node.input if node.op_type in ("ConstantOfShape", "Range") else node.input[1:]
        if node.op_type in SIZED and varying.intersection(deciding):
            raise InputError(
                f"{name}: {node.op_type} makes a tensor whose size depends on values; export it with fixed sizes"
            )
        if node.op_type not in ("Shape", "Size") and (
            node.op_type.startswith("Random") or varying.intersection(node.input)
        ):
            varying.update(node.output)


def run_once(model: "ModelProto", meta: GraphMeta | None, name: str) -> None:
    """Runs one frame by every installed runtime that may run the graph later.

    `meta` has the size of the picture; None for a graph whose inputs have fixed sizes.
    """
    stored = {tensor.name for tensor in model.graph.initializer}
    arrays = {one.name: _zeros(one, meta) for one in model.graph.input if one.name not in stored}
    try:
        with runtime_errors("cannot run one frame"):
            shapes = {key: value.shape for key, value in arrays.items()}
            results = [openvino_runner(model.SerializeToString(), shapes)(arrays)]
            if find_spec("onnxruntime"):
                results.append(session_runner(model)(arrays))
    except InputError as error:
        raise InputError(f"{name}: {error}; export it again") from error
    for value in model.graph.output:
        said = [axis.dim_value for axis in value.type.tensor_type.shape.dim]
        for found in (list(result[value.name].shape) for result in results):
            if len(said) != len(found) or any(size not in (0, has) for size, has in zip(said, found, strict=True)):
                raise InputError(f"{name}: {value.name[:40]!r} is {found}, not {said} as it says; export it again")


def _zeros(value: "ValueInfoProto", meta: GraphMeta | None) -> np.ndarray:
    """An input of zeros at the sizes at which backends run it; the signature has been checked."""
    from onnx.helper import tensor_dtype_to_np_dtype

    kind = value.type.tensor_type
    shape = [axis.dim_value or 1 for axis in kind.shape.dim]  # any number of pictures
    if meta and value.name in ("frame", "image"):
        shape[1:] = (3, meta.height, meta.width) if meta.kind == "logits" else (meta.height, meta.width, 3)
    return np.zeros(shape, tensor_dtype_to_np_dtype(kind.elem_type))
