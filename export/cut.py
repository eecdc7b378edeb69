"""Takes the network out of one of our graph files: from a frame of the network's size to the logits."""

from typing import Any

FRAME, LOGITS = "frame", "logits"


def network_of(model: Any, height: int, width: int) -> Any:
    """The part of an `onnx.ModelProto` that makes `logits` from `frame`, with the frame's size fixed to h x w.

    The resize is then one between equal sizes, which runtimes leave out; so what is left is normalisation and network.
    """
    import onnx

    producers = {output: node for node in model.graph.node for output in node.output}
    needed: set[str] = set()
    pending = [LOGITS]
    while pending:
        name = pending.pop()
        node = producers.get(name)
        if name in needed:
            continue
        needed.add(name)
        if node is not None:
            pending.extend(filter(None, node.input))
    nodes = [node for node in model.graph.node if any(output in needed for output in node.output)]
    logits = next(value for value in model.graph.value_info if value.name == LOGITS)
    frame = onnx.helper.make_tensor_value_info(FRAME, onnx.TensorProto.UINT8, [1, height, width, 3])
    graph = onnx.helper.make_graph(
        nodes, "network", [frame], [logits], [tensor for tensor in model.graph.initializer if tensor.name in needed]
    )
    graph.value_info.extend(v for v in model.graph.value_info if v.name in needed and v.name != LOGITS)
    cut = onnx.helper.make_model(graph, opset_imports=model.opset_import, ir_version=model.ir_version)
    return onnx.shape_inference.infer_shapes(cut)
