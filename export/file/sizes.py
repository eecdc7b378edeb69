"""A limit on the memory of a graph, checked before anything is computed: the size of every tensor.

A graph of 300 bytes can ask for a terabyte: by a constant, range, repetition, row times column, or thirty doublings
of a tensor. There are always more ways, so the limit is on the tensors themselves. ONNX infers the sizes of a node's
outputs from its inputs' sizes; the few whole numbers that sizes depend on are computed here. Measured: 0.1 ms a node,
20 ms for the file of a U-Net. All tensors in 215 files of 180 networks have known sizes.
"""

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from steadyseg.core.errors import InputError, in_line
from steadyseg.export.file.metadata import GraphMeta

if TYPE_CHECKING:
    from onnx import ModelProto, NodeProto, TensorProto, TypeProto, ValueInfoProto

MAX_LIVE_BYTES = 2**32
"""Limit on the tensors that exist at once, in the file's order: tensors that a node reads and writes or a later node
reads. The papers' U-Net takes 1.5 GB for a picture of 1024x2048."""
FIXED_BYTES, FIXED_TIMES = 2**28, 8
"""Limit on the sum of constant tensors, which executors compute on opening a file and keep: FIXED_BYTES plus
FIXED_TIMES the file's weights. Int8 weights become four times as large; an NFNet computes its weights from other
weights, twice."""
FEW = 64
"""Largest number of values in a tensor that may hold sizes."""
ARITHMETIC = set(
    (
        "Add And Cast Concat Constant ConstantOfShape Div Equal Expand Floor Gather Greater GreaterOrEqual Identity "
        "Less LessOrEqual Max Min Mod Mul Neg Not Range Reshape Slice Squeeze Sub Transpose Unsqueeze Where"
    ).split()
)
"""Operators that compute sizes."""


@dataclass(frozen=True)
class TensorFacts:
    """Type and size of a tensor, and its values if every picture gives the same values."""

    type: "TypeProto"
    bytes: int
    fixed: bool
    """True if the values depend on no pixel and no random draw."""
    values: "TensorProto | None" = None
    """The values of a fixed tensor, if they are few."""


def check_sizes(model: "ModelProto", meta: GraphMeta | None, name: str) -> None:
    """Raises InputError where the size of a tensor is unknown, or the tensors of one picture are too large.

    `meta` has the size of the picture; None for a graph whose inputs have fixed sizes.
    """
    graph = model.graph
    known = {value.name: _given(value, meta) for value in graph.input}
    stored = {tensor.name: _stored(tensor) for tensor in graph.initializer}
    max_fixed = FIXED_BYTES + FIXED_TIMES * sum(one.bytes for one in stored.values())
    known |= stored
    last = {key: number for number, node in enumerate(graph.node) for key in node.input}
    last |= dict.fromkeys((value.name for value in graph.output), len(graph.node))
    live, fixed = sum(one.bytes for one in known.values()), 0
    for number, node in enumerate(graph.node):
        try:
            made = _made(node, known, model)
        except Exception as error:  # onnx raises many classes of several bases
            reason = in_line(error)[:200]
            raise InputError(
                f"{name}: no size can be inferred for the output of {node.op_type} ({reason}); export it again"
            ) from error
        known |= made
        live += sum(one.bytes for one in made.values())
        fixed += sum(one.bytes for one in made.values() if one.fixed)
        for asked, most in ((live, MAX_LIVE_BYTES), (fixed, max_fixed)):
            if asked > most:
                raise InputError(f"{name}: asks for {_mb(asked)} at {node.op_type}, at most {_mb(most)} are given")
        done = (key for key in {*node.input, *node.output} if key and last.get(key, number) == number)
        live -= sum(known[key].bytes for key in done)
    for value in (*graph.value_info, *graph.output):
        if value.name in known and not _agree(known[value.name].type, value.type):
            raise InputError(f"{name}: {value.name[:40]!r} has another type or shape than it says; export it again")


def _agree(found: "TypeProto", said: "TypeProto") -> bool:
    """True if the inferred type and shape are the declared ones, as far as they are declared."""
    ours, theirs = found.tensor_type, said.tensor_type
    if ours.elem_type != theirs.elem_type or (
        theirs.HasField("shape") and len(ours.shape.dim) != len(theirs.shape.dim)
    ):
        return False
    return all(
        one.dim_value == other.dim_value or not other.HasField("dim_value")
        for one, other in zip(ours.shape.dim, theirs.shape.dim, strict=False)
    )


def _given(value: "ValueInfoProto", meta: GraphMeta | None) -> TensorFacts:
    """Returns an input at the sizes at which executors run it; the signature has been checked."""
    import onnx

    kind = onnx.TypeProto()
    kind.CopyFrom(value.type)
    if meta and value.name in ("frame", "image"):
        picture = (3, meta.height, meta.width) if meta.kind == "logits" else (meta.height, meta.width, 3)
        for place, size in zip(kind.tensor_type.shape.dim[1:], picture, strict=True):
            place.dim_value = size
    if kind.tensor_type.shape.dim and not kind.tensor_type.shape.dim[0].HasField("dim_value"):
        kind.tensor_type.shape.dim[0].dim_value = 1  # any number of pictures
    return TensorFacts(kind, _bytes(kind), fixed=False)


def _stored(tensor: "TensorProto") -> TensorFacts:
    import onnx

    kind = onnx.helper.make_tensor_type_proto(tensor.data_type, tensor.dims)
    return TensorFacts(kind, _bytes(kind), fixed=True, values=tensor if math.prod(tensor.dims) <= FEW else None)


def _made(node: "NodeProto", known: dict[str, TensorFacts], model: "ModelProto") -> dict[str, TensorFacts]:
    """Returns the outputs of a node; raises the exceptions of onnx if an output has no size."""
    from onnx.defs import get_schema
    from onnx.shape_inference import infer_node_outputs

    versions = {entry.domain: entry.version for entry in model.opset_import}
    given = {key: known[key] for key in node.input if key}
    few = {key: one.values for key, one in given.items() if one.values is not None}
    schema = get_schema(node.op_type, versions[node.domain], node.domain)
    kinds = {key: one.type for key, one in given.items()}
    found = infer_node_outputs(schema, node, kinds, few, opset_imports=list(model.opset_import))
    of_shape = node.op_type in ("Shape", "Size")
    fixed = of_shape or (all(one.fixed for one in given.values()) and not node.op_type.startswith("Random"))
    made = {key: TensorFacts(found[key], _bytes(found[key]), fixed) for key in node.output if key}
    small = all(math.prod(_sizes(one.type)) <= FEW for one in made.values())
    if small and (of_shape or (node.op_type in ARITHMETIC and len(few) == len(given))):
        made = {
            key: replace(one, values=value)
            for (key, one), value in zip(made.items(), _compute(node, given), strict=True)
        }
    return made


def _compute(node: "NodeProto", given: dict[str, TensorFacts]) -> list["TensorProto"]:
    """Computes the few values of a node's outputs from the values of its inputs."""
    from onnx.numpy_helper import from_array, to_array
    from onnx.reference import ReferenceEvaluator

    nothing = np.zeros((), np.uint8)  # Shape looks at no value
    arrays = {
        key: np.broadcast_to(nothing, _sizes(one.type)) if one.values is None else to_array(one.values)
        for key, one in given.items()
    }
    with np.errstate(all="ignore"):
        return [from_array(np.asarray(value)) for value in ReferenceEvaluator(node).run(None, arrays)]


def _sizes(kind: "TypeProto") -> tuple[int, ...]:
    """Returns the sizes; ValueError for an unknown size."""
    shape = kind.tensor_type.shape
    sizes = tuple(place.dim_value if place.HasField("dim_value") else -1 for place in shape.dim)
    if not kind.tensor_type.HasField("shape") or min(sizes, default=0) < 0:
        raise ValueError("it depends on values")
    return sizes


def _bytes(kind: "TypeProto") -> int:
    from onnx.helper import tensor_dtype_to_np_dtype

    return math.prod(_sizes(kind)) * tensor_dtype_to_np_dtype(kind.tensor_type.elem_type).itemsize


def _mb(size: int) -> str:
    return f"{min(size, 2**80) >> 20} MB"
