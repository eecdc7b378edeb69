"""A float16 graph for its proof on a CPU: one that really rounds every value between two operators.

ONNX Runtime has few float16 operators for CPUs. It computes in float32 and drops the casts between them, even without
graph optimisations, so that a value of 3e5 passes there and becomes infinite on a GPU.
"""

from typing import Any

from export.file.subgraph import network_alone, with_network


def rounding(model: Any) -> Any:
    """A copy whose network passes every float16 tensor through two Concats of one tensor, which really move 16 bits.

    One of them, alone among casts, ONNX Runtime would run in float32 as well.
    """
    import onnx

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
