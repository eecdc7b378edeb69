"""Conversion of a graph's network to float16.

Only the nodes from `image` to `logits` change, and both tensors stay float32 (export/file/subgraph.py). The graph must
therefore run the network once a frame: several dropout passes have no single `logits`.
"""

import contextlib
import logging
from collections.abc import Iterator
from typing import Any

import onnx

from steadyseg.export.file.sessions import import_onnxruntime
from steadyseg.export.file.subgraph import network_alone, with_network


def to_fp16(model: Any) -> Any:
    """Returns a copy of an `onnx.ModelProto` with a float16 network. Values beyond 65504 overflow."""
    import_onnxruntime()
    from onnxruntime.transformers.float16 import DEFAULT_OP_BLOCK_LIST, convert_float_to_float16

    # Random draws stay float32, so that the rate of a dropout layer is not rounded to eleven bits.
    blocked = [*DEFAULT_OP_BLOCK_LIST, "Bernoulli", "RandomUniform", "RandomNormal", "RandomNormalLike"]
    with _quiet():
        small = convert_float_to_float16(network_alone(model), keep_io_types=True, op_block_list=blocked)
    return with_network(model, small)


def rounding(model: Any) -> Any:
    """Returns a copy of a float16 graph that rounds every value between two operators, for its proof on a CPU.

    ONNX Runtime has few float16 operators for CPUs. It computes in float32 and drops the casts between operators, even
    without graph optimisations. So a value of 3e5 passes on a CPU and becomes infinite on a GPU. Here every float16
    tensor of the network passes two Concats of one tensor, which really move 16 bits. A single Concat between casts
    would run in float32 as well.
    """
    network = onnx.shape_inference.infer_shapes(network_alone(model))
    half = {
        value.name for value in network.graph.value_info if value.type.tensor_type.elem_type == onnx.TensorProto.FLOAT16
    }
    nodes = []
    for node in network.graph.node:
        nodes.append(node)
        for place, name in enumerate(node.output):
            if name in half:
                node.output[place] = f"{name}_exact"
                for source, target in ((f"{name}_exact", f"{name}_moved"), (f"{name}_moved", name)):
                    nodes.append(onnx.helper.make_node("Concat", [source], [target], name=f"{target}_rounded", axis=0))
    rounded = onnx.ModelProto()
    rounded.CopyFrom(network)
    for field in ("node", "value_info"):
        rounded.graph.ClearField(field)
    rounded.graph.node.extend(nodes)
    return with_network(model, rounded)


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Silences the converters, which log progress and advice to the root logger."""
    before = logging.root.manager.disable
    logging.disable(logging.WARNING)
    try:
        yield
    finally:
        logging.disable(before)
