"""Brings a segmentation graph of another program into our form, in a child with limits: one picture in, scores out, our
version of the operators."""

import contextlib
import copy
import json
import math
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import numpy as np
import onnx
import onnx.inliner
import onnx.version_converter
from onnx import ModelProto, NodeProto, TensorProto, ValueInfoProto
from onnx.shape_inference import infer_shapes

from steadyseg.core.errors import InputError
from steadyseg.export.file.first_run import refuse_varying_sizes, run_once
from steadyseg.export.file.metadata import MAX_SIDE
from steadyseg.export.file.onnx_file import parse_foreign, parse_whole
from steadyseg.export.file.signature import Shape, type_and_shape
from steadyseg.export.file.subgraph import inside

INLINED = frozenset(("Attention", "CastLike", "RMSNormalization", "RotaryEmbedding", "Swish"))
"""Operators that only a foreign graph may contain: onnx replaces each by the operators that define it."""
FOLDED = INLINED | {"Constant", "Dropout", "EyeLike", "Size"}
"""All operators that only a foreign graph may contain. Wrapping replaces the last four by constants or removes them."""
DECIDING = ("ArgMax", "Greater")
"""Operators that make labels of logits or probabilities; `Greater` with a constant."""
FORMING = ("Cast", "Identity", "Reshape", "Resize", "Squeeze", "Transpose", "Unsqueeze")
"""Operators that bring labels into another form."""


def reduced(data: bytes, name: str, length: int, output: str, bgr: bool) -> bytes:
    """Returns the graph of `ForeignGraph.data`, in the child, with the other fields in its `doc_string`.

    `data`: the file, `length` bytes, and then the file of weights. Labels are replaced by the tensor that they were
    decided from.
    """
    path, notes = Path(name), list[str]()
    model = parse_whole(data[:length], path)
    _embed(model, data[length:], path)
    graph = model.graph
    picture = picture_of(model, path)  # some exporters list each weight as an input too, as IR version 3 asked for
    graph.ClearField("input")
    graph.input.append(picture)
    model.ir_version = max(model.ir_version, 4)
    makers = {key: node for node in graph.node for key in node.output}
    constants = {tensor.name: tensor for tensor in graph.initializer}
    constants |= {node.output[0]: one.t for node in graph.node for one in node.attribute if one.name == "value"}
    given = [value.name for value in graph.output]
    if output and output not in (*given, *makers):
        shown = ", ".join(repr(key[:40]) for key in given[:8])
        raise InputError(f"{path}: has no output {output!r}; it has {shown}")
    ends = dict[str, float | None]()
    for key in [output] if output else given:
        before, threshold = _before_labels(key, makers, constants)
        ends[before] = ends.get(before) if threshold is None else threshold
        if before != key:
            notes.append(f"output {key[:40]!r} holds labels: {before[:40]!r} is taken, from which they are computed")
    keep_outputs(model, list(ends))
    model = parse_foreign(model.SerializeToString(), path, FOLDED)
    levels = _take_floats(model, path)
    if bgr:
        _turn_colours(model, path)
    model.doc_string = json.dumps({"levels": levels, "notes": notes, "thresholds": ends})
    return model.SerializeToString()


def _embed(model: ModelProto, weights: bytes, path: Path) -> None:
    """Puts the weights of another file into the graph; InputError for places outside of it."""
    for tensor in model.graph.initializer:
        if tensor.data_location != tensor.EXTERNAL:
            continue
        place = {entry.key: entry.value for entry in tensor.external_data}
        numbers = [place.get("offset", "0"), place.get("length", str(len(weights)))]
        start, size = (int(text) if text.isascii() and text.isdigit() and len(text) < 19 else -1 for text in numbers)
        if min(start, size) < 0 or start > len(weights) or ("length" in place and start + size > len(weights)):
            raise InputError(
                f"{path}: tensor {tensor.name[:80]!r} is outside of the file with the weights, which has "
                f"{len(weights)} bytes; copy both files again"
            )
        tensor.raw_data = weights[start : start + size]
        tensor.ClearField("external_data")
        tensor.ClearField("data_location")


def _before_labels(
    name: str, makers: dict[str, NodeProto], constants: dict[str, TensorProto]
) -> tuple[str, float | None]:
    """Returns the scores from which the graph computes the labels `name`, and the threshold, None for an arg-max.

    If `name` holds no labels, it is returned itself."""
    key, threshold = name, None
    while (node := makers.get(key)) is not None and node.op_type in FORMING:
        key = node.input[0]
    if node is None or node.op_type not in DECIDING:
        return name, None
    if node.op_type == "Greater":
        constant = constants.get(node.input[1])
        if constant is None or math.prod(constant.dims) != 1:
            return name, None
        threshold = onnx.numpy_helper.to_array(constant).item()
    key = node.input[0]
    while (before := makers.get(key)) is not None and before.op_type == "Squeeze":  # which removed a single channel
        key = before.input[0]
    return key, threshold


def keep_outputs(model: ModelProto, names: Sequence[str]) -> None:
    """Leaves in the graph the outputs `names`, and the nodes and weights that they need."""
    inferred = graph = model.graph
    nodes = inside(model, "", names)
    needed = {*names, *(key for node in nodes for key in node.input)}
    with contextlib.suppress(Exception):  # onnx raises many classes for operators that are refused later
        inferred = infer_shapes(model).graph
    known = {value.name: value for value in (*inferred.value_info, *inferred.output)}
    unknown = partial(onnx.helper.make_tensor_value_info, elem_type=onnx.TensorProto.FLOAT, shape=[None] * 4)
    kept = {
        "node": nodes,
        "initializer": [weights for weights in graph.initializer if weights.name in needed],
        "output": [known[name] if name in known else unknown(name) for name in names],
        "value_info": [],
    }
    for name, values in kept.items():
        copies = copy.deepcopy(values)
        graph.ClearField(name)
        getattr(graph, name).extend(copies)


def _take_floats(model: ModelProto, path: Path) -> bool:
    """Lets the input be float32, which the graph then converts; returns True if it takes levels 0..255."""
    graph, picture = model.graph, model.graph.input[0]
    kind = type_and_shape(picture, str(path))[0]
    if kind not in ("FLOAT", "FLOAT16", "UINT8"):
        raise InputError(f"{path}: its input is {kind.lower()}, expected a picture of float32, float16 or uint8")
    if kind == "FLOAT":
        return False
    given, number = f"{picture.name}.float32", picture.type.tensor_type.elem_type
    rounded = f"{given}.rounded" if kind == "UINT8" else given
    nodes = [onnx.helper.make_node("Cast", [rounded], [picture.name], to=number), *graph.node]
    if kind == "UINT8":
        nodes.insert(0, onnx.helper.make_node("Round", [given], [rounded]))
    picture.name, picture.type.tensor_type.elem_type = given, onnx.TensorProto.FLOAT
    nodes = copy.deepcopy(nodes)
    graph.ClearField("node")
    graph.node.extend(nodes)
    return kind == "UINT8"


def _turn_colours(model: ModelProto, path: Path) -> None:
    """Lets the input be RGB, which the graph then turns into BGR."""
    graph, picture = model.graph, model.graph.input[0]
    axis = 3 if has_channels_last(type_and_shape(picture, str(path))[1], path) else 1
    given, order = f"{picture.name}.rgb", f"{picture.name}.order"
    turn = onnx.helper.make_node("Gather", [given, order], [picture.name], axis=axis)
    graph.node.insert(0, turn)
    graph.initializer.append(onnx.numpy_helper.from_array(np.array([2, 1, 0]), order))
    picture.name = given


def prepare(data: bytes, name: str, height: int, width: int, opset: int) -> bytes:
    """Returns the graph of `ForeignGraph.model` made of `ForeignGraph.data`, in the child; height 0 keeps the graph's
    own size."""
    path = Path(name)
    model = parse_whole(data, path)
    graph = model.graph
    picture = copy.deepcopy(picture_of(model, path))
    shape = type_and_shape(picture, str(path))[1]
    channels_last = has_channels_last(shape, path)
    size = size_of(shape[1:3] if channels_last else shape[2:], (height, width) if height else None, path)
    fixed = (1, *size, 3) if channels_last else (1, 3, *size)
    if isinstance(shape[0], int) and shape[0] != 1:
        raise InputError(f"{path}: takes {shape[0]} pictures at once, expected 1; export it for one, or a free number")
    for axis, length in zip(picture.type.tensor_type.shape.dim, fixed, strict=True):
        axis.dim_value = length
    del graph.input[:]
    graph.input.append(picture)
    for value in graph.output:  # their sizes are inferred again, since free sizes are now fixed
        value.type.tensor_type.ClearField("shape")
    model = infer_shapes(_converted(infer_shapes(model), opset, path))
    refuse_varying_sizes(model, name)
    run_once(model, None, name)
    return model.SerializeToString()


def picture_of(model: ModelProto, path: Path) -> ValueInfoProto:
    """Returns the one input that is no weight; InputError unless there is exactly one."""
    graph = model.graph
    stored = {tensor.name for tensor in graph.initializer}
    inputs = [value for value in graph.input if value.name not in stored]
    if len(inputs) != 1 or not graph.output:
        names = ", ".join(repr(value.name[:40]) for value in inputs[:8]) or "none"
        raise InputError(f"{path}: has {len(inputs)} inputs ({names}), expected one: a normalised picture")
    return inputs[0]


def _converted(model: ModelProto, opset: int, path: Path) -> ModelProto:
    """Returns the graph with the operators of version `opset`; InputError where onnx cannot convert it."""
    version = max(entry.version for entry in model.opset_import if entry.domain in ("", "ai.onnx"))
    try:
        model = onnx.inliner.inline_selected_functions(model, [("", name) for name in INLINED], False, True)
        return onnx.version_converter.convert_version(model, opset)
    except Exception as error:  # onnx's C++ raises many classes
        reason = (str(error).strip() or type(error).__name__).splitlines()[-1][:200]
        raise InputError(
            f"{path}: onnx cannot convert its opset {version} to {opset} ({reason}); export it with opset {opset}"
        ) from error


def has_channels_last(shape: Shape, path: Path) -> bool:
    """Finds the layout by the axis of the three colours; InputError if no axis or both axes can be it."""
    shown = ", ".join("?" if not isinstance(size, int) else str(size) for size in shape)
    found = [axis for axis in (1, 3) if len(shape) == 4 and shape[axis] == 3]
    if len(found) != 1:
        raise InputError(
            f"{path}: its input is [{shown}], expected a picture [1, 3, h, w] or [1, h, w, 3]; export it with its "
            "colour axis fixed"
        )
    return found == [3]


def size_of(free: Shape, size: tuple[int, int] | None, path: Path) -> tuple[int, int]:
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
