"""The check of a graph's inputs and outputs against its metadata.

A foreign graph with our metadata, or one with its states in another order, would run and give wrong maps.
"""

import math
from typing import TYPE_CHECKING

from steadyseg.core.errors import InputError
from steadyseg.core.frame import FAMILIARITY_OUTPUTS, MOTION_INPUTS
from steadyseg.core.method import is_temporal
from steadyseg.export.file.metadata import GraphMeta

if TYPE_CHECKING:
    import onnx

MAPS = ("label", "confidence", "entropy", "disagreement")
MAX_STATE_VALUES = 2**30
"""Limit on the values in all states, which an executor allocates at the start: the mean of 100 classes at 2160 x 3840
has 8e8."""
MAX_DIMENSIONS = 4
"""The mean of predictions: (B, K, h, w)."""

FLOATS = ("FLOAT", "FLOAT16")
Shape = tuple[int | str | None, ...]
"""Fixed sizes are integers, free sizes are names or None."""
Values = dict[str, tuple[str, Shape]]
"""Type and shape by name, in the order of the graph."""


def state_names(count: int, end: str) -> list[str]:
    """state_00_in, state_01_in, ...: two digits, so that sorting by name keeps the order."""
    return [f"state_{index:02d}_{end}" for index in range(count)]


def check_signature(graph: "onnx.GraphProto", meta: GraphMeta, name: str) -> None:
    """Raises InputError where names, order, types or shapes of inputs and outputs do not match the metadata."""
    inputs = {value.name: type_and_shape(value, name) for value in graph.input}
    outputs = {value.name: type_and_shape(value, name) for value in graph.output}
    if len(inputs) != len(graph.input) or len(outputs) != len(graph.output):
        raise InputError(f"{name}: two inputs or two outputs have the same name")
    if meta.kind == "logits":
        _check_logits(inputs, outputs, meta, name)
    elif meta.kind == "classifier":
        _check_classifier(inputs, outputs, meta, name)
    else:
        _check_stream(inputs, outputs, meta, name)


def _check_logits(inputs: Values, outputs: Values, meta: GraphMeta, name: str) -> None:
    _expect_names(list(inputs), ["image"], "inputs", name)
    _expect_names(list(outputs), ["logits"], "outputs", name)
    _expect(inputs, "image", FLOATS, ("N", 3, "h", "w"), name)
    _expect(outputs, "logits", FLOATS, ("N", len(meta.classes), "h", "w"), name)


def _check_classifier(inputs: Values, outputs: Values, meta: GraphMeta, name: str) -> None:
    _expect_names(list(inputs), ["image"], "inputs", name)
    _expect_names(list(outputs), ["probs", "entropy", "disagreement"], "outputs", name)
    _expect(inputs, "image", ("UINT8",), ("N", meta.height, meta.width, 3), name)
    _expect(outputs, "probs", ("FLOAT",), ("N", len(meta.classes)), name)
    for key in ("entropy", "disagreement"):
        _expect(outputs, key, ("FLOAT",), ("N",), name)


def _check_stream(inputs: Values, outputs: Values, meta: GraphMeta, name: str) -> None:
    states = sum(key.startswith("state_") for key in inputs)
    temporal = is_temporal(meta.method.mode)
    if temporal != (states > 0):
        raise InputError(
            f"{name}: mode {meta.method.mode} with {states} state inputs; a vq mode has states, another mode has none"
        )
    moved = MOTION_INPUTS if meta.method.motion else ()
    _expect_names(list(inputs), ["frame", "gap", "reset", *moved, *state_names(states, "in")], "inputs", name)
    carried = [*(["probs"] if not temporal else []), *state_names(states, "out")]
    _expect_names(
        list(outputs), [*MAPS, *carried, *(FAMILIARITY_OUTPUTS if meta.reference_scores else ())], "outputs", name
    )
    for key, (kind, shape) in (*inputs.items(), *outputs.items()):
        if shape[:1] != (1,):
            raise InputError(
                f"{name}: {key} is {_text(kind, shape)}, expected 1 as its first size: a file has one stream"
            )
    _expect(inputs, "frame", ("UINT8",), (1, "H", "W", 3), name)
    for key in ("gap", "reset"):
        _expect(inputs, key, ("FLOAT",), (1, 1), name)
    for key, shape in zip(moved, ((1, *meta.state_size, 2), (1, *meta.state_size)), strict=False):
        _expect(inputs, key, ("FLOAT",), shape, name)
    for key in FAMILIARITY_OUTPUTS[:2] if meta.reference_scores else ():
        _expect(outputs, key, ("FLOAT",), (1, 1), name)
    for key in (*MAPS, *(FAMILIARITY_OUTPUTS[2:] if meta.reference_scores else ())):
        _expect(outputs, key, ("UINT8",), inputs["frame"][1][:3], name)
    _check_states(inputs, outputs, states, name)
    _check_probabilities(carried[0], outputs, meta, name)


def _check_states(inputs: Values, outputs: Values, states: int, name: str) -> None:
    """Requires fixed shapes, equal as input and output: the first frame needs zeros, every other the last output."""
    values = 0
    for entering, leaving in zip(state_names(states, "in"), state_names(states, "out"), strict=True):
        kind, shape = inputs[entering]
        sizes = [size for size in shape if isinstance(size, int) and size > 0]
        if len(sizes) != len(shape) or not 2 <= len(shape) <= MAX_DIMENSIONS or kind not in FLOATS:
            raise InputError(f"{name}: {entering} is {_text(kind, shape)}, expected a float of fixed sizes")
        if outputs[leaving] != inputs[entering]:
            raise InputError(
                f"{name}: {leaving} is {_text(*outputs[leaving])} but {entering} is {_text(kind, shape)}; "
                "the states do not come back as they went in"
            )
        values += math.prod(sizes)
    if values > MAX_STATE_VALUES:
        raise InputError(f"{name}: its states have {values} values in all, at most {MAX_STATE_VALUES} are accepted")


def _check_probabilities(key: str, outputs: Values, meta: GraphMeta, name: str) -> None:
    """Requires probabilities (..., K, h, w) in the first state or `probs`: evaluation and inspection read them."""
    expected = (len(meta.classes), *meta.state_size)
    kind, shape = outputs[key]
    if shape[-3:] != expected or kind not in FLOATS:
        raise InputError(
            f"{name}: {key} is {_text(kind, shape)}, expected a float whose shape ends with {list(expected)}: "
            f"classes, height "
            f"and width of its metadata over head_stride {meta.head_stride}"
        )


def _expect_names(found: list[str], expected: list[str], what: str, name: str) -> None:
    if found != expected:
        shown = ", ".join(repr(key[:40]) for key in found[:20]) or "none"
        raise InputError(f"{name}: its {what} are {shown}, expected {', '.join(expected[:20])} in this order")


def _expect(values: Values, key: str, types: tuple[str, ...], shape: Shape, name: str) -> None:
    """Requires type and shape; an integer in `shape` needs an equal fixed size in the graph."""
    kind, found = values[key]
    fits = len(found) == len(shape) and all(
        size == wanted if isinstance(wanted, int) else not isinstance(size, int) or size > 0
        for size, wanted in zip(found, shape, strict=False)
    )
    if kind not in types or not fits:
        raise InputError(f"{name}: {key} is {_text(kind, found)}, expected {_text(' or '.join(types), shape)}")


def type_and_shape(value: "onnx.ValueInfoProto", name: str) -> tuple[str, Shape]:
    """Returns type and shape of an input or output of the file `name`; InputError for a value that is not a tensor."""
    import onnx

    if not value.type.HasField("tensor_type") or not value.type.tensor_type.HasField("shape"):
        raise InputError(f"{name}: {value.name[:40]!r} is no tensor with a shape")
    tensor = value.type.tensor_type
    numbers = onnx.TensorProto.DataType.values()
    kind = onnx.TensorProto.DataType.Name(tensor.elem_type) if tensor.elem_type in numbers else str(tensor.elem_type)
    shape = (size.dim_value if size.HasField("dim_value") else size.dim_param or None for size in tensor.shape.dim)
    return kind, tuple(shape)


def _text(kind: str, shape: Shape) -> str:
    sizes = (
        str(size) if isinstance(size, int) else "?" if size is None else ascii(size[:20])[1:-1] for size in shape[:8]
    )
    return f"{kind.lower()} [{', '.join(sizes)}]"
