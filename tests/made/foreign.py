"""Small segmentation graphs as other programs write them: one convolution, and an end of any kind."""

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
import torch
from onnx import TensorProto, helper, numpy_helper
from torch import nn

HEIGHT, WIDTH, CLASSES = 48, 64, 3
MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
NORMALISED = ["--mean", *map(str, MEAN), "--std", *map(str, STD)]
Change = Callable[[onnx.ModelProto], object]
QUERIES = {"eomt": "Eomt", "mask2former": "Mask2Former", "oneformer": "OneFormer"}
"""Networks of queries, and their names in transformers."""


def foreign_onnx(
    path: Path,
    end: str = "logits",
    *,
    channels_last: bool = False,
    shape: tuple[Any, ...] = (1, 3, HEIGHT, WIDTH),
    classes: int = CLASSES,
    opset: int = 13,
    change: Change = lambda model: None,
) -> Path:
    """Writes a graph that ends in logits, Softmax, Sigmoid, or ArgMax, and `change`s it."""
    weights = np.random.default_rng(5).normal(size=(classes, 3, 3, 3)).astype(np.float32)
    constants = {"weights": weights, "zero": np.float32(0.0), "tenth": np.float32(0.1)}
    nodes, last = [], "picture"
    if channels_last:
        nodes.append(helper.make_node("Transpose", [last], ["turned"], perm=[0, 3, 1, 2]))
        last, shape = "turned", (shape[0], *shape[2:], 3)
    nodes.append(helper.make_node("Conv", [last, "weights"], ["raw"], pads=[1, 1, 1, 1]))
    kind, last = TensorProto.FLOAT, "raw"
    if end != "logits":
        attributes = {"Softmax": {"axis": 1}, "ArgMax": {"axis": 1, "keepdims": 0}}.get(end, {})
        nodes.append(helper.make_node(end, [last], ["ended"], **attributes))
        kind, last = TensorProto.INT64 if end == "ArgMax" else TensorProto.FLOAT, "ended"
    if channels_last and end != "ArgMax":
        nodes.append(helper.make_node("Transpose", [last], ["back"], perm=[0, 2, 3, 1]))
        last = "back"
    graph = helper.make_graph(
        nodes,
        "other",
        [helper.make_tensor_value_info("picture", TensorProto.FLOAT, shape)],
        [helper.make_tensor_value_info(last, kind, ["n", "a", "b"] if end == "ArgMax" else ["n", "a", "b", "c"])],
        [numpy_helper.from_array(value, name) for name, value in constants.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)
    change(model)
    path.write_bytes(model.SerializeToString())
    return path


def add_end(operator: str, domain: str = "", inputs: Sequence[str] = (), **attributes: Any) -> Change:
    """Returns a function that applies one operator to a graph's output; `inputs` names its further inputs."""

    def change(model: onnx.ModelProto) -> None:
        last = model.graph.output[0]
        model.graph.node.append(helper.make_node(operator, [last.name, *inputs], ["more"], domain=domain, **attributes))
        last.name = "more"

    return change


def build(name: str) -> nn.Module:
    """A network of five classes with random weights: a library's, or one whose logits have a quarter of the size."""
    torch.manual_seed(1)
    found: nn.Module
    if name in ("lraspp_mobilenet_v3_large", "deeplabv3_mobilenet_v3_large"):
        from torchvision.models import get_model

        return get_model(name, weights=None, weights_backbone=None, num_classes=5)
    if name == "yolo26n-sem":
        found = pytest.importorskip("ultralytics", reason="YOLO26 needs ultralytics").YOLO(f"{name}.yaml")
        return found
    if name in ("segformer", *QUERIES):
        library = pytest.importorskip("transformers", reason=f"{name} needs transformers")
        names = {number: letter for number, letter in enumerate("abcde")}
        if name == "segformer":
            return library.SegformerForSemanticSegmentation(library.SegformerConfig(id2label=names))
        if name == "eomt":
            sizes = {"hidden_size": 48, "num_hidden_layers": 4, "num_attention_heads": 4, "intermediate_size": 64}
            options = {"image_size": 96, "num_blocks": 1, "num_queries": 10, "num_register_tokens": 0}
            return library.EomtForUniversalSegmentation(library.EomtConfig(**sizes, **options, id2label=names))
        sizes = {"embed_dim": 24, "depths": [1] * 4, "num_heads": [2] * 4, "window_size": 4, "image_size": 96}
        inner = library.SwinConfig(**sizes, out_features=["stage1", "stage2", "stage3", "stage4"])
        widths = "hidden_dim encoder_feedforward_dim dim_feedforward"
        widths += " feature_size mask_feature_size" if name == "mask2former" else " conv_dim mask_dim"
        options = {"encoder_layers": 1, "decoder_layers": 2, "num_attention_heads": 4, "num_queries": 10}
        options |= dict.fromkeys(widths.split(), 32) | ({} if name == "mask2former" else {"is_training": False})
        config = getattr(library, f"{QUERIES[name]}Config")(backbone_config=inner, **options, id2label=names)
        network = getattr(library, f"{QUERIES[name]}ForUniversalSegmentation")(config)
        if name == "oneformer":  # the words of its task, as numbers of its tokenizer
            network.forward = partial(network.forward, task_inputs=torch.arange(77)[None])
        return network
    import segmentation_models_pytorch as smp

    found = getattr(smp, name)("resnet18", encoder_weights=None, classes=5)
    return found
