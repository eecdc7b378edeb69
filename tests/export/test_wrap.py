"""`steadyseg wrap`: networks of other programs become files that run like one's own; everything else is one line."""

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
import torch
import torch.nn.functional as F
from made.foreign import HEIGHT, MEAN, NORMALISED, STD, WIDTH, add_end, build, foreign_onnx
from made.graphs import Graphs
from made.methods import opened
from onnx import TensorProto, helper
from refusals import one_line_error, refusal
from torch import nn

from steadyseg.app.cli import main
from steadyseg.core.dropout import set_dropout_active
from steadyseg.core.frame import Maps
from steadyseg.core.predictors import first_tensor
from steadyseg.core.preprocess import Normalize
from steadyseg.export.file.onnx_file import parse_foreign, read_onnx
from steadyseg.export.run.sessions import cpu_session
from steadyseg.seg.pretrained import read_segmenter
from steadyseg.seg.street.drive import Street

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("checked_here")]


def wrap(network: Path, *flags: object) -> Path:
    output = network.with_name(f"{network.stem}-wrapped.onnx")
    assert main(["wrap", str(network), "-o", str(output), *NORMALISED, *map(str, flags)]) == 0
    return output


def exported(network: nn.Module, path: Path, height: int, width: int, **options: Any) -> Path:
    torch.onnx.export(network.eval(), (torch.zeros(1, 3, height, width),), path, verbose=False, **options)
    return path


def frames(height: int, width: int, count: int = 6) -> list[Any]:
    return list(Street(seed=3, height=height, width=width).frames(count))


def run(model: Path, stream: list[Any], **flags: Any) -> list[Maps]:
    segmenter = opened(model, keep_probs=True, precision="fp32", **flags)
    return [segmenter.step(frame) for frame in stream]


@pytest.mark.filterwarnings("ignore:.*LeafSpec:FutureWarning")  # of torch 2.11, about itself
def test_a_networks_own_export_and_its_wrapped_graph_are_one(graphs: Graphs, tmp_path: Path) -> None:
    """Everything around the network is the same: resize, normalisation, mean over time, motion, cuts, maps, classes."""
    model, ours = read_segmenter("street-tiny"), graphs("motion")
    meta = read_onnx(ours).meta
    network = model.network()
    set_dropout_active(network, False)
    path = exported(network, tmp_path / "other.onnx", meta.height, meta.width, external_data=False)
    flags = ["--temperature", str(meta.method.temperature), "--mean", *map(str, meta.mean), "--std"]
    flags += map(str, meta.std)
    theirs = tmp_path / "mine.onnx"
    assert main(["wrap", str(path), "-o", str(theirs), "--classes", "camvid", *flags]) == 0
    wrapped = read_onnx(theirs).meta
    assert (wrapped.classes, wrapped.height, wrapped.width) == (meta.classes, meta.height, meta.width)
    stream = frames(120, 160)
    stream[3:] = list(Street(seed=9, height=120, width=160).frames(6))[3:]  # a scene cut
    for one, other in zip(run(ours, stream), run(theirs, stream), strict=True):
        assert (one.label == other.label).mean() >= 0.9999
        assert one.probs is not None and other.probs is not None and np.abs(one.probs - other.probs).max() < 1e-4


class Plain(nn.Module):
    """The network with a tensor as output, as it is exported."""

    def __init__(self, network: nn.Module) -> None:
        super().__init__()
        self.network = network

    def forward(self, image: torch.Tensor) -> torch.Tensor:
        return first_tensor(self.network(image))


OLD = {"dynamo": False, "opset_version": 11, "input_names": ["image"], "dynamic_axes": {"image": {2: "h", 3: "w"}}}
"""Options of torch's former exporter: operators of 2019, and sizes that the graph computes from its input's."""


DEEPLAB = "deeplabv3_mobilenet_v3_large"


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize(
    "name",
    [
        "lraspp_mobilenet_v3_large",
        "quarter",
        *(pytest.param(name, marks=pytest.mark.long) for name in ("segformer", DEEPLAB, "Unet", "FPN")),
    ],
)
def test_a_wrapped_network_gives_its_own_probabilities(name: str, tmp_path: Path) -> None:
    network = Plain(build(name))
    of_old = name in ("lraspp_mobilenet_v3_large", "quarter")
    path = exported(network, tmp_path / "other.onnx", 64, 96, **OLD if of_old else {"external_data": False})
    wrapped = wrap(path, "--motion", "off", *["--size", "64x96"] if of_old else [])
    frame = frames(64, 96, 1)
    (maps,) = run(wrapped, frame)
    image = Normalize(MEAN, STD)(torch.from_numpy(frame[0].image).permute(2, 0, 1)[None])
    with torch.no_grad():
        logits = network(image)
    if logits.shape[-2:] != (64, 96):  # of a quarter of the size: enlarged to a half
        logits = F.interpolate(logits, (32, 48), mode="bilinear", align_corners=False)
    probs = torch.softmax(logits, 1)[0].numpy()
    assert maps.probs is not None and np.abs(maps.probs - probs).max() < 1e-4
    if probs.shape[-2:] == (64, 96):
        assert (maps.label == probs.argmax(0)).mean() > 0.999


@pytest.mark.parametrize(
    ("end", "classes", "channels_last"),
    [("Softmax", 3, False), ("logits", 3, True), ("Sigmoid", 1, True), ("logits", 1, False)],
)
def test_every_form_of_an_output_becomes_the_same_probabilities(
    end: str, classes: int, channels_last: bool, tmp_path: Path
) -> None:
    path = foreign_onnx(tmp_path / "other.onnx", end, classes=classes, channels_last=channels_last)
    frame = frames(HEIGHT, WIDTH, 1)
    (maps,) = run(wrap(path, "--motion", "off"), frame)
    image = Normalize(MEAN, STD)(torch.from_numpy(frame[0].image).permute(2, 0, 1)[None]).numpy()
    (output,) = cpu_session(path.read_bytes()).run(
        None, {"picture": np.ascontiguousarray(image.transpose(0, 2, 3, 1)) if channels_last else image}
    )
    output = output[0].transpose(2, 0, 1) if channels_last else output[0]
    if end == "logits" and classes == 3:
        output = np.exp(output) / np.exp(output).sum(0)
    if classes == 1:
        alpha = 1 / (1 + np.exp(-output)) if end == "logits" else output
        output = np.concatenate([1 - alpha, alpha])
    assert maps.probs is not None and np.abs(maps.probs - output).max() < 1e-4


@pytest.mark.long
def test_a_free_size_is_fixed_and_the_temperature_fitted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = foreign_onnx(tmp_path / "other.onnx", shape=(1, 3, "h", "w"), classes=11)
    wrapped = wrap(path, "--size", "60x90", "--data", "street", "--classes", "camvid")
    meta = read_onnx(wrapped).meta
    assert (meta.height, meta.width) == (60, 90) and meta.method.calibrated and meta.method.temperature > 1
    assert f"temperature {meta.method.temperature:.3f} for vq-dnn" in capsys.readouterr().err


def second_input(model: onnx.ModelProto) -> None:
    model.graph.input.append(helper.make_tensor_value_info("state", TensorProto.FLOAT, [1]))


def external(model: onnx.ModelProto) -> None:
    weights = model.graph.initializer[0]
    weights.external_data.add(key="location", value="/etc/passwd")
    weights.data_location = TensorProto.EXTERNAL


FREE = (1, 3, "h", "w")
REFUSED: dict[str, tuple[dict[str, Any], list[str], str]] = {
    "labels": ({"end": "ArgMax"}, [], "these are labels (an arg-max)"),
    "several sigmoids": ({"end": "Sigmoid"}, [], "export the network without its last sigmoid"),
    "classes": ({}, ["--classes", "camvid"], "which is 3 classes, and 11 were named"),
    "free size": ({"shape": FREE}, [], "so give the size to fix: --size HxW"),
    "fixed size": ({}, ["--size", "64x64"], "works at 48x64 (height x width) alone, got --size 64x64"),
    "size of one number": ({"shape": FREE}, ["--size", "64"], "expected HEIGHTxWIDTH"),
    "layout of the input": ({"shape": (1, 3, 32, 3)}, [], "expected a picture [1, 3, h, w] or [1, h, w, 3]"),
    "layout of the output": ({"shape": (1, 3, 40, 40), "classes": 40}, [], "name the classes, or give a picture"),
    "four pictures": ({"shape": (4, 3, HEIGHT, WIDTH)}, [], "takes 4 pictures at once"),
    "second input": ({"change": second_input}, [], "has 2 inputs ('picture', 'state')"),
    "external data": ({"change": external}, [], "external_data=False"),
    "random numbers": ({"change": add_end("RandomUniformLike")}, [], "draws random numbers (RandomUniformLike)"),
    "custom operator": ({"change": add_end("Run", "evil")}, [], "operator 'Run' of the custom domain 'evil'"),
    "size by values": ({"change": add_end("NonZero")}, [], "operator 'NonZero' is not run here"),
    "one direction": ({"change": add_end("Flatten")}, [], "expected logits (1, K, h, w) or (1, h, w, K)"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_be_wrapped_is_one_line(case: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made, flags, words = REFUSED[case]
    path = foreign_onnx(tmp_path / "other.onnx", **made)
    assert words in one_line_error(capsys, "wrap", path, "-o", tmp_path / "mine.onnx", *NORMALISED, *flags)
    assert not (tmp_path / "mine.onnx").exists()


def test_mean_and_std_are_asked_for_in_shares_of_one(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["wrap", foreign_onnx(tmp_path / "other.onnx"), "-o", tmp_path / "mine.onnx"]
    assert "--mean is missing, expected three numbers" in one_line_error(capsys, *words, "--std", 1, 1, 1)
    assert "divide it by 255" in one_line_error(capsys, *words, "--mean", 123.7, 116.3, 103.5, "--std", 1, 1, 1)


def test_a_foreign_graph_as_a_model_names_the_way_in(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = foreign_onnx(tmp_path / "other.onnx", change=add_end("NonZero"))
    assert f"steadyseg wrap {path}" in one_line_error(capsys, "video", "street:1:2", "--model", path)
    assert f"steadyseg wrap {path}" in one_line_error(capsys, "demo", path)
    path = foreign_onnx(path, change=lambda model: helper.set_model_props(model, {"steadyseg_format": "1"}))
    assert "a file of steadyseg already" in one_line_error(capsys, "wrap", path, "-o", tmp_path / "x.onnx", *NORMALISED)


def test_nodes_in_any_order_are_sorted(tmp_path: Path) -> None:
    """ONNX Runtime runs such a file; converters to fp16 append their casts. It was called no valid graph."""
    model = onnx.load(foreign_onnx(tmp_path / "a.onnx"))
    model.graph.node.append(helper.make_node("Relu", list(model.graph.node[-1].output), ["more"]))
    nodes = list(model.graph.node)
    del model.graph.node[:]
    model.graph.node.extend(reversed(nodes))
    data, path = model.SerializeToString(), tmp_path / "b.onnx"
    assert list(parse_foreign(data, path, set()).graph.node) == nodes
    model.graph.node[-1].input[0] = model.graph.node[0].output[0]
    assert "its nodes need each other" in refusal(parse_foreign, model.SerializeToString(), path, set())
