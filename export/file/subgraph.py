"""Extraction and replacement of the network inside a graph. An executor then runs only the network, and a conversion to
fewer bits changes only the network. Resize, normalisation, softmax, smoothing, maps and state stay float32.
"""

from collections.abc import Sequence
from graphlib import TopologicalSorter
from typing import Any

FRAME, IMAGE, LOGITS = "frame", "image", "logits"
NOVELTY = ("score", "temperature", "energies")
"""Outputs after the logits of a network with novelty statistics."""


def network_of(model: Any, height: int, width: int) -> Any:
    """Returns the graph from `frame` to `logits`, with the frame's size fixed to h x w.

    Runtimes leave out a resize between equal sizes, so that normalisation and network remain.
    """
    import onnx

    values = _values(model)
    ends = [LOGITS, *(name for name in NOVELTY if name in values)]
    frame = onnx.helper.make_tensor_value_info(FRAME, onnx.TensorProto.UINT8, [1, height, width, 3])
    network = _part(model, _inside(model, FRAME, ends), [frame], [values[end] for end in ends])
    return onnx.shape_inference.infer_shapes(network)


def network_alone(model: Any) -> Any:
    """Returns an `onnx.ModelProto` with the nodes from `image` to `logits`; dropout masks stay inputs."""
    import onnx

    nodes = _inside(model)
    used = {name for node in nodes for name in node.input}
    values = _values(model)
    masks = [value for value in model.graph.input if value.name in used and value.name != IMAGE]
    alone = _part(model, nodes, [values[IMAGE], *masks], [values[LOGITS]])
    onnx.checker.check_model(alone)
    return alone


def _part(model: Any, nodes: list[Any], inputs: list[Any], outputs: list[Any]) -> Any:
    """Returns an `onnx.ModelProto` of these nodes of `model`, with the weights and inner types that they need."""
    from onnx import helper

    used = {name for node in nodes for name in (*node.input, *node.output)}
    constants = [tensor for tensor in model.graph.initializer if tensor.name in used]
    graph = helper.make_graph(nodes, "network", inputs, outputs, constants)
    inner = used - {value.name for value in (*inputs, *outputs)}
    graph.value_info.extend(value for value in model.graph.value_info if value.name in inner)
    return helper.make_model(graph, opset_imports=model.opset_import, ir_version=model.ir_version)


def with_network(model: Any, network: Any) -> Any:
    """Returns a copy of `model` with `network` in the place of its nodes from `image` to `logits`."""
    import onnx

    inside = _inside(model)
    gone = {name for node in inside for name in node.output}
    rest = [node for node in model.graph.node if not gone.intersection(node.output)]
    ends = {value.name for values in (model.graph.input, model.graph.output) for value in values}
    shared = {name for node in rest for name in (*node.input, *node.output)} | {IMAGE, LOGITS}
    network = _rename(network, shared - ends - {IMAGE, LOGITS, ""})
    made = onnx.ModelProto()
    made.CopyFrom(model)
    for field in ("node", "initializer", "value_info"):
        made.graph.ClearField(field)
    made.graph.node.extend(sort_nodes([*rest, *network.graph.node]))
    made.graph.initializer.extend(tensor for tensor in model.graph.initializer if tensor.name in shared)
    made.graph.initializer.extend(network.graph.initializer)
    made.graph.value_info.extend(value for value in model.graph.value_info if value.name in shared)
    onnx.checker.check_model(made, full_check=True)
    return made


def _values(model: Any) -> dict[str, Any]:
    """Returns the declared inputs, outputs and inner tensors by name."""
    graph = model.graph
    return {value.name: value for values in (graph.value_info, graph.input, graph.output) for value in values}


def _inside(model: Any, start: str = IMAGE, ends: Sequence[str] = (LOGITS,)) -> list[Any]:
    """Returns the nodes on the way from `start` to `ends`, in their order."""
    makers = {name: position for position, node in enumerate(model.graph.node) for name in node.output}
    found: set[int] = set()
    pending = list(ends)
    while pending:
        name = pending.pop()
        position = makers.get(name)
        if name != start and position is not None and position not in found:
            found.add(position)
            pending.extend(model.graph.node[position].input)
    return [model.graph.node[position] for position in sorted(found)]


def _rename(network: Any, taken: set[str]) -> Any:
    """Returns a copy whose inner tensors have none of the names in `taken`, since network and rest share constants."""
    import onnx

    new = onnx.ModelProto()
    new.CopyFrom(network)
    for tensor in new.graph.initializer:
        if tensor.name in taken:
            tensor.name = f"{tensor.name}_network"
    for node in new.graph.node:
        for names in (node.input, node.output):
            names[:] = [f"{name}_network" if name in taken else name for name in names]
    return new


def sort_nodes(nodes: list[Any]) -> list[Any]:
    """Returns the nodes in topological order, as the format demands; CycleError where they need each other."""
    makers = {name: position for position, node in enumerate(nodes) for name in node.output}
    needs = {position: [makers[name] for name in node.input if name in makers] for position, node in enumerate(nodes)}
    return [nodes[position] for position in TopologicalSorter(needs).static_order()]
