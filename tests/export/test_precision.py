"""Graph files in fp16 and int8: made by the command, measured, refused, and run by every executor."""

import dataclasses
from collections.abc import Callable
from pathlib import Path

import cv2
import numpy as np
import onnx
import pytest
import torch
from made.graphs import HEIGHT, WIDTH, Graphs, skip_tracing
from made.pictures import picture
from onnx import TensorProto
from refusals import one_line_error
from torch import nn

from steadyseg.app.cli import main
from steadyseg.app.export.int8_loss import Loss, subsample_frames
from steadyseg.core.classes import CAMVID
from steadyseg.core.errors import CheckFailed
from steadyseg.core.frame import Frame
from steadyseg.core.model.checkpoint import CheckpointMeta, save_checkpoint
from steadyseg.core.segmenter import Segmenter
from steadyseg.core.tracing import Signature
from steadyseg.export.file.onnx_file import read_onnx
from steadyseg.export.file.subgraph import network_alone, network_of, with_network
from steadyseg.export.run.open_file import graph_executor
from steadyseg.export.run.sessions import session_runner
from steadyseg.export.write.proof import Bounds, measure_parity, network_pairs, require_parity
from steadyseg.export.write.traced import trace
from steadyseg.seg.networks.unet import UNet
from steadyseg.seg.options import UNetOptions
from steadyseg.seg.street.drive import StreetSet

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("checked_here")]


def write_images(folder: Path, images: list[np.ndarray]) -> Path:
    folder.mkdir(parents=True)
    for number, image in enumerate(images):
        cv2.imwrite(str(folder / f"{number:03}.png"), image[..., ::-1] if image.ndim == 3 else image)
    return folder


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A labelled data set in CamVid's layout, of two streets."""
    root = tmp_path_factory.mktemp("data")
    pairs = [StreetSet(24, HEIGHT, WIDTH, first_seed=seed)[i] for seed in (5, 900) for i in range(0, 24, 2)]
    write_images(root / "train", [image for image, _ in pairs[:12]])
    write_images(root / "test", [image for image, _ in pairs[12:]])
    write_images(root / "testannot", [label for _, label in pairs[12:]])
    return root


def export(output: Path, *flags: str | Path, model: str = "street-tiny") -> int:
    return main([str(argument) for argument in ("export", model, "-o", output, "--size", HEIGHT, *flags)])


@pytest.fixture(scope="module")
def files(data: Path, graphs: Graphs) -> dict[str, Path]:
    """street-tiny, stateful, in all three precisions, from one trace."""
    made = {"fp32": graphs("vq-dnn")}
    with pytest.MonkeyPatch.context() as patch:
        skip_tracing(patch, made["fp32"])
        for precision, flags in {"fp16": [], "int8": ["--calibration-data", data]}.items():
            made[precision] = data / f"{precision}.onnx"
            assert export(made[precision], "--stateful", "--motion", "off", "--precision", precision, *flags) == 0
    return made


def types(path: Path) -> dict[str, int]:
    graph = onnx.load(path).graph
    values = [*graph.input, *graph.output, *graph.value_info]
    return {value.name: value.type.tensor_type.elem_type for value in values}


@pytest.mark.parametrize("precision", ["fp16", "int8"])
def test_only_the_network_changes(files: dict[str, Path], precision: str) -> None:
    full, small = onnx.load(files["fp32"]), onnx.load(files[precision])
    before, after = types(files["fp32"]), types(files[precision])
    ends = [value.name for value in (*full.graph.input, *full.graph.output)]
    assert {"state_00_in", "state_00_out"} < set(ends)
    assert [after[name] for name in (*ends, "image", "logits")] == [before[name] for name in (*ends, "image", "logits")]
    inside = {node.name for node in network_alone(full).graph.node}
    rest = {node.SerializeToString() for node in full.graph.node if node.name not in inside}
    assert len(rest) > 20 and rest <= {node.SerializeToString() for node in small.graph.node}


def test_the_convolutions_hold_the_type_that_was_asked_for(files: dict[str, Path]) -> None:
    for precision, kind in (("fp32", TensorProto.FLOAT), ("fp16", TensorProto.FLOAT16), ("int8", TensorProto.INT8)):
        network = network_of(read_onnx(files[precision]).model, HEIGHT, WIDTH)
        constants = {tensor.name: tensor.data_type for tensor in network.graph.initializer}
        held = {node.output[0]: node.input[0] for node in network.graph.node if node.op_type == "DequantizeLinear"}
        weights = [node.input[1] for node in network.graph.node if node.op_type in ("Conv", "ConvTranspose")]
        assert len(weights) > 5 and {constants[held.get(name, name)] for name in weights} == {kind}


@pytest.mark.parametrize(
    ("executor", "precision", "equal"), [("openvino", "int8", 0.97), ("onnxruntime", "fp16", 0.995)]
)
def test_every_executor_runs_it_near_fp32(files: dict[str, Path], executor: str, precision: str, equal: float) -> None:
    full = Segmenter(graph_executor(read_onnx(files["fp32"]), executor="onnxruntime", device="cpu", precision="fp32"))
    small = Segmenter(graph_executor(read_onnx(files[precision]), executor=executor, device="cpu"))
    street = StreetSet(12, HEIGHT, WIDTH, first_seed=31)
    frames = [Frame(street[index][0], index, index / 25, discontinuity=index == 0) for index in range(4)]
    same = [(full.step(frame).label == small.step(frame).label).mean() for frame in frames]
    assert np.mean(same) > equal


@pytest.fixture
def int8_of(graphs: Graphs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[Path], tuple[int, Path]]:
    """(exit code, file) of exporting the network alone in int8, fitted on these data."""
    skip_tracing(monkeypatch, graphs("logits"))
    output = tmp_path / "network.onnx"
    flags = ["--precision", "int8", "--mode", "dnn", "--calibration-data"]
    return lambda data: (export(output, *flags, data), output)


Int8 = Callable[[Path], tuple[int, Path]]


def test_the_loss_is_measured_on_the_labelled_stills_and_said(
    data: Path, int8_of: Int8, capsys: pytest.CaptureFixture[str]
) -> None:
    code, output = int8_of(data)
    said = " ".join(capsys.readouterr().err.split())
    assert code == 0 and "int8 fitted on 12 frames; all 12 labelled test stills: mean IoU 0." in said
    assert "labels equal in 9" in said and read_onnx(output).meta.precision == "int8"


def test_images_without_labels_fit_it_but_measure_nothing(
    data: Path, int8_of: Int8, capsys: pytest.CaptureFixture[str]
) -> None:
    assert int8_of(data / "train")[0] == 0
    assert "its loss was not measured, as test/ and testannot/ are missing" in " ".join(capsys.readouterr().err.split())


def test_scales_from_black_pictures_lose_too_much_and_leave_no_file(
    data: Path, int8_of: Int8, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    black = tmp_path / "black"
    write_images(black / "train", [np.zeros((HEIGHT, WIDTH, 3), np.uint8)] * 3)
    for name in ("test", "testannot"):
        (black / name).symlink_to(data / name)
    code, output = int8_of(black)
    assert code == 1 and "int8 costs more than 1 point of mean IoU" in capsys.readouterr().err and not output.exists()


def test_a_point_of_iou_and_half_a_point_of_calibration_are_accepted_and_no_more() -> None:
    def accepted(miou: float, ece: float) -> bool:
        return Loss(60, 147, (0.5, miou), (0.02, ece)).accepted

    assert accepted(0.491, 0.0249) and accepted(0.6, 0.0151)
    assert not accepted(0.489, 0.02) and not accepted(0.5, 0.0251) and not accepted(0.5, 0.0149)


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (["--precision", "int8"], "needs --calibration-data"),
        (["--precision", "int8", "--calibration-data", "/nowhere"], "no such file or folder"),
        (["--precision", "bf16"], "export fp32 and choose bf16 where it runs"),
        (["--precision", "fp16", "--mode", "bnn", "--samples", "2"], "one pass a frame, got 2"),
        (["--precision", "int8", "--calibration-data", "street", "--mode", "vq-bnn"], "use mode vq-dnn"),
        (["--precision", "int8", "--calibration-data", "street", "--streams", "2"], "use --streams dynamic, got 2"),
    ],
)
def test_what_cannot_be_made_is_said_in_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], flags: list[str], said: str
) -> None:
    output = tmp_path / "x.onnx"
    assert said in one_line_error(capsys, "export", "street-tiny", "-o", output, "--stateful", *flags)
    assert not output.exists()


@pytest.mark.long
def test_fp16_with_dropout_draws_the_same_masks(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
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
    overflowing = traced.in_precision("fp16")
    parity = measure_parity(network_pairs(network, overflowing.runner, images), "probs")
    assert not parity.finite
    words = r"the fp16 graph is too far from torch, .*beyond the number format's range"
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


@pytest.mark.parametrize(("length", "expected"), [(3, [0, 1, 2]), (9, [0, 2, 4, 6, 8]), (100, None)])
def test_fitting_frames_are_evenly_spaced_over_any_length(length: int, expected: list[int] | None) -> None:
    kept = subsample_frames(iter(np.arange(length)), 8, lambda frame: frame)
    assert expected is None or kept == expected
    steps = {int(step) for step in np.diff(kept)}
    assert len(steps) == 1 and min(length, 5) <= len(kept) <= 8 and length - kept[-1] <= steps.pop()
