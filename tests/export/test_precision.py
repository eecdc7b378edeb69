"""Graph files in fp16: made by the command, proven, refused, and run by every backend."""

import dataclasses
from pathlib import Path

import numpy as np
import onnx
import pytest
import torch
from made.graphs import HEIGHT, WIDTH, Graphs, skip_tracing
from made.pictures import picture
from onnx import TensorProto
from torch import nn

from steadyseg.app.cli import main
from steadyseg.core.classes import CAMVID
from steadyseg.core.errors import CheckFailed
from steadyseg.core.frame import Frame
from steadyseg.core.model.checkpoint import CheckpointMeta, save_checkpoint
from steadyseg.core.segmenter import Segmenter
from steadyseg.core.tracing import Signature
from steadyseg.export.file.onnx_file import read_onnx
from steadyseg.export.file.sessions import session_runner
from steadyseg.export.file.subgraph import network_alone, network_of, with_network
from steadyseg.export.write.proof import Bounds, measure_parity, network_pairs, require_parity
from steadyseg.export.write.traced import trace
from steadyseg.runtime.open_file import graph_backend
from steadyseg.seg.networks.unet import UNet
from steadyseg.seg.options import UNetOptions
from steadyseg.street.drive import StreetSet

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("checked_here")]


def export(output: Path, *flags: str | Path, model: str = "street-tiny") -> int:
    return main([str(argument) for argument in ("export", model, "-o", output, "--size", HEIGHT, *flags)])


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory, graphs: Graphs) -> dict[str, Path]:
    """street-tiny, stateful, in both precisions, from one trace."""
    made = {"fp32": graphs("vq-dnn"), "fp16": tmp_path_factory.mktemp("small") / "fp16.onnx"}
    with pytest.MonkeyPatch.context() as patch:
        skip_tracing(patch, made["fp32"])
        assert export(made["fp16"], "--stateful", "--motion", "off", "--precision", "fp16") == 0
    return made


def types(path: Path) -> dict[str, int]:
    graph = onnx.load(path).graph
    values = [*graph.input, *graph.output, *graph.value_info]
    return {value.name: value.type.tensor_type.elem_type for value in values}


def test_only_the_network_changes(files: dict[str, Path]) -> None:
    full, small = onnx.load(files["fp32"]), onnx.load(files["fp16"])
    before, after = types(files["fp32"]), types(files["fp16"])
    ends = [value.name for value in (*full.graph.input, *full.graph.output)]
    assert {"state_00_in", "state_00_out"} < set(ends)
    assert [after[name] for name in (*ends, "image", "logits")] == [before[name] for name in (*ends, "image", "logits")]
    inside = {node.name for node in network_alone(full).graph.node}
    rest = {node.SerializeToString() for node in full.graph.node if node.name not in inside}
    assert len(rest) > 20 and rest <= {node.SerializeToString() for node in small.graph.node}


def test_the_convolutions_hold_the_type_that_was_asked_for(files: dict[str, Path]) -> None:
    for precision, kind in (("fp32", TensorProto.FLOAT), ("fp16", TensorProto.FLOAT16)):
        network = network_of(read_onnx(files[precision]).model, HEIGHT, WIDTH)
        constants = {tensor.name: tensor.data_type for tensor in network.graph.initializer}
        weights = [node.input[1] for node in network.graph.node if node.op_type in ("Conv", "ConvTranspose")]
        assert len(weights) > 5 and {constants[name] for name in weights} == {kind}


@pytest.mark.parametrize("backend", ["openvino", "onnxruntime"])
def test_every_backend_runs_it_near_fp32(files: dict[str, Path], backend: str) -> None:
    full = Segmenter(graph_backend(read_onnx(files["fp32"]), backend="onnxruntime", device="cpu", precision="fp32"))
    small = Segmenter(graph_backend(read_onnx(files["fp16"]), backend=backend, device="cpu", precision="fp32"))
    street = StreetSet(12, HEIGHT, WIDTH, first_seed=31)
    frames = [Frame(street[index][0], index, index / 25, discontinuity=index == 0) for index in range(4)]
    same = [(full.step(frame).label == small.step(frame).label).mean() for frame in frames]
    assert np.mean(same) > 0.995


@pytest.mark.long
def test_fp16_with_dropout_draws_the_same_masks(tmp_path, capsys, monkeypatch):
    torch.manual_seed(0)
    options = UNetOptions(channels=4, depth=3, dropout=0.5, dropout_places=("enc3",))
    network = UNet(len(CAMVID), options)
    for module in network.modules():
        if isinstance(module, nn.Conv2d | nn.ConvTranspose2d):
            nn.init.kaiming_normal_(module.weight)  # so that a mask changes the prediction
    meta = CheckpointMeta("unet", dataclasses.asdict(options), CAMVID, HEIGHT, WIDTH, (0.4,) * 3, (0.25,) * 3)
    save_checkpoint(tmp_path / "random.safetensors", network.state_dict(), meta)
    noise = tuple(picture(seed, HEIGHT, WIDTH) for seed in range(21))
    monkeypatch.setattr("steadyseg.app.export.segmenter.proof_frames", lambda: noise)
    model, output = str(tmp_path / "random.safetensors"), tmp_path / "x.onnx"
    flags = ["--stateful", "--mode", "vq-bnn", "--precision", "fp16"]
    assert export(output, *flags, model=model) == 0
    said = capsys.readouterr().err
    assert "fp16 against torch in fp32: 21 frames" in said and "masks drawn inside in fp16" in " ".join(said.split())
    assert read_onnx(output).meta.precision == "fp16"


def test_values_beyond_float16_are_a_failed_proof() -> None:
    network = nn.Sequential(nn.Conv2d(3, 4, 1), nn.Conv2d(4, 3, 1)).eval()
    with torch.no_grad():
        network[0].weight.fill_(1e3)  # values of 1.2e5, from weights that float16 can hold
        network[1].weight.copy_(torch.linspace(-1e-5, 1e-5, 12).reshape(3, 4, 1, 1))
    images = [np.full((1, 3, 8, 8), 40, np.float32)]
    traced = trace(network, Signature(("image",), ("logits",), (torch.from_numpy(images[0]),)))
    traced.prove(images)
    overflowing = traced.in_fp16()
    parity = measure_parity(network_pairs(network, overflowing.runner, images), "probs")
    assert not parity.finite
    words = r"the fp16 graph is too far from torch: .*beyond the number format's range"
    with pytest.raises(CheckFailed, match=words):
        require_parity(parity, Bounds(0.0, 1e9), "fp16")
    with pytest.raises(CheckFailed, match=words):
        overflowing.prove(images)


def test_a_network_put_back_computes_what_it_did(files: dict[str, Path]) -> None:
    model = onnx.load(files["fp32"])
    image = StreetSet(1, HEIGHT, WIDTH)[0][0][None]
    feed = {"frame": image, "gap": np.ones((1, 1), np.float32), "reset": np.ones((1, 1), np.float32)}
    for value in model.graph.input[3:]:
        feed[value.name] = np.zeros([size.dim_value for size in value.type.tensor_type.shape.dim], np.float32)
    whole, again = (session_runner(one)(feed) for one in (model, with_network(model, network_alone(model))))
    assert whole.keys() == again.keys() and all(np.array_equal(whole[name], again[name]) for name in whole)
