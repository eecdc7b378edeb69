"""Extraction and replacement of the network inside a graph. A backend then runs only the network, and a conversion to
fewer bits changes only the network. Resize, normalisation, softmax, smoothing, maps and state stay float32.
"""

from collections.abc import Sequence
from graphlib import TopologicalSorter
from typing import Any

from steadyseg.core.errors import InputError

FRAME, IMAGE, LOGITS, FEATURES = "frame", "image", "logits", "features"
FAMILIARITY = ("score", "energies")
"""Outputs after the logits of a network with familiarity statistics."""
PREFIX = "network."
"""Prefix of the names inside a network that is put into a graph."""


def network_of(model: Any, height: int, width: int) -> Any:
    """Returns the graph from `frame` to `logits`, with the frame's size fixed to h x w.

    Runtimes leave out a resize between equal sizes, so that normalisation and network remain.
    """
    import onnx

    values = _values(model)
    ends = [LOGITS, *(name for name in FAMILIARITY if name in values)]
    frame = onnx.helper.make_tensor_value_info(FRAME, onnx.TensorProto.UINT8, [1, height, width, 3])
    network = _part(model, inside(model, FRAME, ends), [frame], [values[end] for end in ends])
    return onnx.shape_inference.infer_shapes(network)


def network_alone(model: Any) -> Any:
    """Returns an `onnx.ModelProto` with the nodes from `image` to `logits`; dropout masks stay inputs."""
    import onnx

    nodes = inside(model)
    used = {name for node in nodes for name in node.input}
    values = _values(model)
    masks = [value for value in model.graph.input if value.name in used and value.name != IMAGE]
    alone = _part(model, nodes, [values[IMAGE], *masks], [values[LOGITS]])
    onnx.checker.check_model(alone)
    return alone


def with_features(network: Any, name: str) -> tuple[Any, list[str]]:
    """Returns a network of `network_alone` with its features as further outputs, and their names in it.

    Features are the inputs of the last convolution at each size after the coarsest, as at a decoder's stages. If the
    coarsest size comes last, the only feature is the input of the last convolution. InputError, for the file `name`,
    without such a convolution.
    """
    import onnx

    made, sizes = onnx.shape_inference.infer_shapes(network), dict[str, list[int]]()
    values = _values(made)
    for node in made.graph.node:
        if node.op_type == "Conv" and (value := values.get(node.input[0])):
            size = [axis.dim_value for axis in value.type.tensor_type.shape.dim]
            if len(size) == 4 and size[1] > 3 and size[2] * size[3] > 1:  # no picture, and no mean of a whole map
                sizes[node.input[0]] = size
    if not sizes:
        raise InputError(
            f"{name}: has no convolution after its first, whose input familiarity could compare; omit --familiarity"
        )
    keys, areas = list(sizes), [size[2] * size[3] for size in sizes.values()]
    decoder = keys[len(areas) - areas[::-1].index(min(areas)) :] or keys[-1:]
    found = list({tuple(sizes[key][2:]): key for key in decoder}.values())
    for number, key in enumerate(found):
        output = f"{FEATURES}_{number}"
        made.graph.node.append(onnx.helper.make_node("Cast", [key], [output], to=onnx.TensorProto.FLOAT))
        made.graph.output.append(onnx.helper.make_tensor_value_info(output, onnx.TensorProto.FLOAT, sizes[key]))
    return made, found


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
    """Returns a copy of `model` with `network` in the place of its nodes from `image` to `logits`. Further outputs of
    `network` replace, in order, the other tensors that the rest of the graph takes from these nodes."""
    import onnx

    replaced = inside(model)
    gone = {name for node in replaced for name in node.output}
    rest = [node for node in model.graph.node if not gone.intersection(node.output)]
    shared = {name for node in rest for name in (*node.input, *node.output)} | {IMAGE, LOGITS}
    taken = [name for node in replaced for name in node.output if name in shared and name not in (LOGITS, "")]
    further = [value.name for value in network.graph.output if value.name != LOGITS]
    names = dict(zip(further, taken, strict=True))  # all other names get a prefix, since rest and network share some
    network = onnx.compose.add_prefix_graph(
        network.graph, PREFIX, rename_inputs=False, rename_outputs=False, name_map=names
    )
    made = onnx.ModelProto()
    made.CopyFrom(model)
    for field in ("node", "initializer", "value_info"):
        made.graph.ClearField(field)
    made.graph.node.extend(sort_nodes([*rest, *network.node]))
    made.graph.initializer.extend(tensor for tensor in model.graph.initializer if tensor.name in shared)
    made.graph.initializer.extend(network.initializer)
    made.graph.value_info.extend(value for value in model.graph.value_info if value.name in shared)
    onnx.checker.check_model(made, full_check=True)
    return made


def _values(model: Any) -> dict[str, Any]:
    """Returns the declared inputs, outputs and inner tensors by name."""
    graph = model.graph
    return {value.name: value for values in (graph.value_info, graph.input, graph.output) for value in values}


def inside(model: Any, start: str = IMAGE, ends: Sequence[str] = (LOGITS,)) -> list[Any]:
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


def sort_nodes(nodes: list[Any]) -> list[Any]:
    """Returns the nodes in topological order, as the format demands; CycleError where they need each other."""
    makers = {name: position for position, node in enumerate(nodes) for name in node.output}
    needs = {position: [makers[name] for name in node.input if name in makers] for position, node in enumerate(nodes)}
    return [nodes[position] for position in TopologicalSorter(needs).static_order()]
