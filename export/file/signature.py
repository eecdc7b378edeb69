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
"""Limit on the values in all states, which a backend allocates at the start: the mean of 100 classes at 2160 x 3840
has 8e8."""
MAX_DIMENSIONS = 4
"""The mean of predictions: (B, K, h, w)."""

FLOATS = ("FLOAT", "FLOAT16")
Shape = tuple[int | str | None, ...]
"""Fixed sizes are integers, free sizes are names or None."""
Values = dict[str, tuple[str, Shape]]
"""Type and shape by name, in the order of the graph."""
Expected = dict[str, tuple[tuple[str, ...], Shape]]
"""Allowed types, and a shape: an integer needs an equal fixed size in the graph."""


def state_names(count: int, end: str) -> list[str]:
    """state_00_in, state_01_in, ...: two digits, so that sorting by name keeps the order."""
    return [f"state_{index:02d}_{end}" for index in range(count)]


def check_signature(graph: "onnx.GraphProto", meta: GraphMeta, name: str) -> None:
    """Raises InputError where names, order, types or shapes of inputs and outputs do not match the metadata."""
    given, made = ({one.name: type_and_shape(one, name) for one in values} for values in (graph.input, graph.output))
    if meta.kind == "stream":
        inputs, outputs = _of_stream(given, meta, name)
    else:
        inputs, outputs = _of_pictures(meta)
    for what, values, found, expected in (
        ("inputs", graph.input, given, inputs),
        ("outputs", graph.output, made, outputs),
    ):
        names = [value.name for value in values]
        if names != list(expected):
            shown = ", ".join(repr(key[:40]) for key in names[:20]) or "none"
            raise InputError(f"{name}: its {what} are {shown}, expected {', '.join(list(expected)[:20])} in this order")
        for key, (types, shape) in expected.items():
            kind, sizes = found[key]
            if kind not in types or not _fits(sizes, shape):
                wanted = _text(" or ".join(types), shape)
                raise InputError(f"{name}: {key} is {_text(kind, sizes)}, expected {wanted}")


def _of_pictures(meta: GraphMeta) -> tuple[Expected, Expected]:
    """The inputs and outputs of a network alone, and of a classifier."""
    classes = len(meta.classes)
    if meta.kind == "logits":
        return {"image": (FLOATS, ("N", 3, "h", "w"))}, {"logits": (FLOATS, ("N", classes, "h", "w"))}
    image: Expected = {"image": (("UINT8",), ("N", meta.height, meta.width, 3))}
    single: Expected = dict.fromkeys(("entropy", "disagreement"), (("FLOAT",), ("N",)))
    return image, {"probs": (("FLOAT",), ("N", classes)), **single}


def _of_stream(given: Values, meta: GraphMeta, name: str) -> tuple[Expected, Expected]:
    """The inputs and outputs of a stream: states leave as they enter, and the first one holds probabilities."""
    states = {key: one for key, one in given.items() if key.startswith("state_")}
    temporal, inner = is_temporal(meta.method.mode), meta.state_size
    if temporal != bool(states):
        raise InputError(
            f"{name}: mode {meta.method.mode} with {len(states)} state inputs; a vq mode has states, another mode has "
            "none"
        )
    values = 0
    for key, (kind, shape) in states.items():
        sizes = [size for size in shape if isinstance(size, int) and size > 0]
        fixed = len(sizes) == len(shape) and 2 <= len(shape) <= MAX_DIMENSIONS and shape[0] == 1
        if not fixed or kind not in FLOATS:
            raise InputError(f"{name}: {key} is {_text(kind, shape)}, expected one stream's float of fixed sizes")
        values += math.prod(sizes)
    if values > MAX_STATE_VALUES:
        raise InputError(f"{name}: its states have {values} values in all, at most {MAX_STATE_VALUES} are accepted")
    number: tuple[tuple[str, ...], Shape] = (("FLOAT",), (1, 1))
    moved: Expected = {"motion": (("FLOAT",), (1, *inner, 2)), "trust": (("FLOAT",), (1, *inner))}
    inputs: Expected = {"frame": (("UINT8",), (1, "H", "W", 3)), "gap": number, "reset": number}
    inputs |= {key: moved[key] for key in MOTION_INPUTS if meta.method.motion}
    inputs |= {
        key: ((kind,), shape)
        for key, (kind, shape) in zip(state_names(len(states), "in"), states.values(), strict=True)
    }
    one_map: tuple[tuple[str, ...], Shape] = (("UINT8",), given.get("frame", ("", ()))[1][:3])
    outputs: Expected = dict.fromkeys(MAPS, one_map)
    probabilities = (len(meta.classes), *inner)
    if states:
        outputs |= {f"{key[:-2]}out": one for key, one in inputs.items() if key.startswith("state_")}
        first_kind, first = states.get("state_00_in", ("", ()))
        if first[-3:] != probabilities:
            raise InputError(
                f"{name}: state_00_out is {_text(first_kind, first)}, expected a shape that ends with "
                f"{list(probabilities)}: classes, height and width of its metadata over head_stride {meta.head_stride}"
            )
    else:
        outputs["probs"] = (FLOATS, (1, *probabilities))
    if meta.reference_scores:
        outputs |= dict.fromkeys(FAMILIARITY_OUTPUTS[:2], number) | dict.fromkeys(FAMILIARITY_OUTPUTS[2:], one_map)
    return inputs, outputs


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


def _fits(found: Shape, wanted: Shape) -> bool:
    """True if fixed sizes are equal where they are wanted, and positive elsewhere."""
    return len(found) == len(wanted) and all(
        size == one if isinstance(one, int) else not isinstance(size, int) or size > 0
        for size, one in zip(found, wanted, strict=True)
    )


def _text(kind: str, shape: Shape) -> str:
    sizes = (
        str(size) if isinstance(size, int) else "?" if size is None else ascii(size[:20])[1:-1] for size in shape[:8]
    )
    return f"{kind.lower()} [{', '.join(sizes)}]"
