"""A foreign segmentation graph as the part of a stream's graph between `image` and `logits`."""

import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import onnx
from onnx import TensorProto, helper

from steadyseg.export.file.foreign import ForeignGraph
from steadyseg.export.file.foreign_form import keep_outputs
from steadyseg.export.file.sessions import import_onnxruntime, runtime_errors
from steadyseg.export.file.subgraph import IMAGE, LOGITS
from steadyseg.export.write.traced import OPSET

PREFIX = "wrapped."
"""Prefix of all tensor and node names of the foreign graph, which the stream's graph may use too."""
OUTPUT = "output"
"""Beginning of the names of the inputs of the graph that makes logits."""


def foreign_network(foreign: ForeignGraph, taken: Mapping[str, str], to_logits: Any, kept: Sequence[str] = ()) -> Any:
    """Returns the graph `image` (1, 3, h, w) -> `logits`: the foreign one, then `to_logits`.

    `taken`: input of `to_logits` by output of the foreign graph. `kept`: outputs that stay beside `logits`.

    Both are `onnx.ModelProto` of version `OPSET`; the foreign graph was read with this version.
    """
    shape = (*foreign.size, 3) if foreign.channels_last else (3, *foreign.size)
    perm = [0, 2, 3, 1] if foreign.channels_last else [0, 1, 2, 3]
    image, picture = (
        helper.make_tensor_value_info(name, TensorProto.FLOAT, [1, *sizes])
        for name, sizes in ((IMAGE, (3, *foreign.size)), ("picture", shape))
    )
    opsets = [helper.make_opsetid("", OPSET)]
    first = helper.make_graph(
        [helper.make_node("Transpose", [IMAGE], ["picture"], perm=perm)], "picture", [image], [picture]
    )
    network = onnx.ModelProto()
    network.CopyFrom(foreign.model)
    keep_outputs(network, [*taken, *kept])
    network = _folded(network)
    del network.opset_import[:]
    network.opset_import.extend(opsets)
    network.ir_version = to_logits.ir_version
    for node in to_logits.graph.node:
        node.name = f"{LOGITS}.{node.name}"  # two nodes of one name are refused by ONNX Runtime
    before = helper.make_model(first, opset_imports=opsets, ir_version=to_logits.ir_version)
    joined = onnx.compose.merge_models(before, network, [("picture", foreign.input)], prefix2=PREFIX)
    return onnx.compose.merge_models(joined, to_logits, [(PREFIX + one, other) for one, other in taken.items()])


def _folded(model: Any) -> Any:
    """Returns the graph as ONNX Runtime simplifies it with standard operators: constants computed, batch norms merged
    into convolutions."""
    runtime = import_onnxruntime()
    options = runtime.SessionOptions()
    options.graph_optimization_level = runtime.GraphOptimizationLevel.ORT_ENABLE_BASIC
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "folded.onnx"
        options.optimized_model_filepath = str(path)
        with runtime_errors("ONNX Runtime cannot load the network"):
            runtime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
        return onnx.load(path)
