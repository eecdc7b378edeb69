"""`steadyseg wrap`: networks of other programs become files that run like one's own; everything else is one line."""

import copy
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
import torch
import torch.nn.functional as F
from made.foreign import HEIGHT, MEAN, NORMALISED, STD, WIDTH, Change, add_end, build, foreign_onnx
from made.graphs import Graphs
from made.methods import opened
from onnx import TensorProto, helper
from refusals import one_line_error, refusal
from torch import nn

from steadyseg.app.cli import main
from steadyseg.core.frame import Maps
from steadyseg.core.predictors import first_tensor
from steadyseg.core.preprocess import Normalize
from steadyseg.core.tracing import Signature
from steadyseg.export.file.onnx_file import parse_foreign, read_onnx
from steadyseg.export.file.subgraph import with_features
from steadyseg.export.write import traced as traced_module
from steadyseg.seg.exported import ExportedStep
from steadyseg.street.drive import Street

pytestmark = [
    pytest.mark.slow,
    pytest.mark.usefixtures("checked_here", "streams_traced_once"),
    pytest.mark.filterwarnings("ignore:.*LeafSpec:FutureWarning"),  # of torch 2.11, about itself
]


@pytest.fixture(scope="module")
def streams_traced_once() -> Iterator[None]:
    """The stream around a stand-in of equal shape is traced once; each command proves its own graph with it."""
    traced: dict[str, onnx.ModelProto] = {}

    def to_onnx(step: nn.Module, signature: Signature) -> onnx.ModelProto:
        if not isinstance(step, ExportedStep):
            return original(step, signature)
        values = [(name, value.tolist()) for name, value in (*step.named_parameters(), *step.named_buffers())]
        key = repr((signature.inputs, [value.shape for value in signature.example], values, step.segmenter.method))
        traced[key] = traced.get(key) or original(step, signature)
        return copy.deepcopy(traced[key])

    original = traced_module.to_onnx
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(traced_module, "to_onnx", to_onnx)
        yield


def wrap(network: Path, *flags: object) -> Path:
    output = network.with_name(f"{network.stem}-wrapped.onnx")
    assert main(["wrap", str(network), "-o", str(output), *NORMALISED, *map(str, flags)]) == 0
    return output


def frames(height: int, width: int, count: int = 6) -> list[Any]:
    return list(Street(seed=3, height=height, width=width).frames(count))


def run(model: Path, stream: list[Any], **flags: Any) -> list[Maps]:
    segmenter = opened(model, keep_probs=True, precision="fp32", **flags)
    return [segmenter.step(frame) for frame in stream]


def test_a_networks_own_export_and_its_wrapped_graph_are_one(graphs: Graphs) -> None:
    """Everything around the network is the same: resize, normalisation, mean over time, motion, cuts, maps, classes."""
    ours, theirs = graphs("motion"), graphs("wrapped")
    meta, wrapped = (read_onnx(path).meta for path in (ours, theirs))
    assert (wrapped.classes, wrapped.height, wrapped.width) == (meta.classes, meta.height, meta.width)
    stream = frames(120, 160)
    stream[3:] = list(Street(seed=9, height=120, width=160).frames(6))[3:]  # a scene cut
    for one, other in zip(run(ours, stream), run(theirs, stream), strict=True):
        assert (one.label == other.label).mean() >= 0.9999
        assert one.probs is not None and other.probs is not None and np.abs(one.probs - other.probs).max() < 1e-4


class Plain(nn.Module):
    """A library's network as it is exported: with a tensor as output, or with ultralytics' labels."""

    def __init__(self, network: nn.Module) -> None:
        super().__init__()
        self.inner = network.model if hasattr(network, "overrides") else network
        if self.inner is not network:
            head: Any = self.inner.eval().model[-1]
            head.export, head.format = True, "onnx"

    def forward(self, image: torch.Tensor) -> torch.Tensor:
        return first_tensor(self.inner(image))

    def logits(self, image: torch.Tensor) -> torch.Tensor:
        if (head := getattr(getattr(self.inner, "model", [None])[-1], "classifier", None)) is None:
            return self(image)
        self.inner.model[-1].export = False
        assert head
        return twice(self.inner(image), 8)


def twice(logits: torch.Tensor, times: int = 2) -> torch.Tensor:
    return F.interpolate(logits, scale_factor=float(times), mode="bilinear", align_corners=False)


class Small(nn.Module):
    """A convolution, and an end; `logits` are what the end is made of."""

    def __init__(self, end: Any = None, classes: int = 5, stride: int = 1, before: Any = None) -> None:
        super().__init__()
        torch.manual_seed(2)
        self.layer = nn.Conv2d(3, classes, 3, padding=1, stride=stride)
        self.queries = nn.Parameter(torch.randn(1, 6, 5))
        self.end, self.before = end or torch.nn.Identity(), before or torch.nn.Identity()

    def forward(self, image: torch.Tensor) -> Any:
        output = self.end(self.before(self.layer(image)))
        return (self.queries + 0.0 * image.mean(), output) if self.layer.out_channels == 6 else output

    def logits(self, image: torch.Tensor) -> torch.Tensor:
        maps = self.before(self.layer(image))
        if maps.shape[1] == 6:
            masks = F.interpolate(maps, (32, 48), mode="bilinear", align_corners=False).sigmoid()
            scores = torch.einsum("bqk,bqhw->bkhw", self.queries.softmax(-1)[..., :-1], masks)
            rest = 1.0 - scores.sum(1, keepdim=True)
            return torch.where(rest > 0, scores + rest / 4, scores / (1 - rest)).log()
        return torch.cat([torch.zeros_like(maps), maps], 1) if maps.shape[1] == 1 else maps


class ChannelsLast(Small):
    """Takes (1, h, w, 3) and gives (1, h, w, K), as networks of TensorFlow do."""

    def forward(self, picture: torch.Tensor) -> Any:
        return super().forward(picture.permute(0, 3, 1, 2)).permute(0, 2, 3, 1)


class OfBytes(nn.Module):
    """A network of raw pictures (1, h, w, 3) that normalises them itself."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = Small()

    def forward(self, picture: torch.Tensor) -> torch.Tensor:
        return self.inner((picture.permute(0, 3, 1, 2) / 255.0 - 0.4) / 0.2)

    def logits(self, image: torch.Tensor) -> torch.Tensor:
        pixels = image * torch.tensor(STD)[:, None, None] + torch.tensor(MEAN)[:, None, None]
        return self.inner((pixels - 0.4) / 0.2)


def to_fp16(path: Path) -> None:
    from onnxruntime.transformers.float16 import convert_float_to_float16

    onnx.save(convert_float_to_float16(onnx.load(path), keep_io_types=True), path)


def to_int8(path: Path) -> None:
    from onnxruntime.quantization import CalibrationDataReader, QuantFormat, quantize_static

    noise = np.random.default_rng(0).normal(size=(1, 3, 64, 96)).astype(np.float32)
    pictures = iter([{onnx.load(path).graph.input[0].name: noise}] * 2)

    class Pictures(CalibrationDataReader):  # type: ignore[misc]
        def get_next(self) -> dict[str, np.ndarray] | None:
            return next(pictures, None)

    quantize_static(path, path, Pictures(), quant_format=QuantFormat.QDQ)


def weights_as_inputs(path: Path) -> None:
    """As IR version 3 asked for."""
    model = onnx.load(path)
    model.ir_version = 3
    for tensor in model.graph.initializer:
        model.graph.input.insert(0, helper.make_tensor_value_info(tensor.name, tensor.data_type, tensor.dims))
    onnx.save(model, path)


OLD = {"dynamo": False, "opset_version": 11, "input_names": ["image"], "dynamic_axes": {"image": {2: "h", 3: "w"}}}
"""Options of torch's former exporter: operators of 2019, and sizes that the graph computes from its input's."""
FREE_BATCH = OLD | {"opset_version": 13, "dynamic_axes": {"image": {0: "n", 2: "h", 3: "w"}}}
FIXED = {"dynamo": False}  # the former exporter takes a tenth of the time: of graphs whose end is what is tested
# tests/app/test_steady.py has the forms and faults of an output, which both find alike
FORMS: dict[str, tuple[Any, dict[str, Any], str]] = {
    "opset 23": (Small, {"opset_version": 23}, "logits of 5 classes"),
    "opset 11, free size": (Small, OLD, "logits of 5 classes"),
    "free batch": (Small, FREE_BATCH, "logits of 5 classes"),
    "weights beside it": (Small, {"external_data": True}, "logits of 5 classes"),
    "enlarged, labels in bytes": (
        lambda: Small(lambda y: y.argmax(1, True).squeeze(1).to(torch.uint8), stride=2, before=twice),
        FIXED,
        "holds labels: ",
    ),
    "enlarged labels": (lambda: Small(lambda y: twice(y.argmax(1, True).float())), FIXED, "holds labels"),
    "threshold": (lambda: Small(lambda y: (y.squeeze(1) > 0).byte(), 1), FIXED, "2 classes in one channel"),
    "channels last": (ChannelsLast, FIXED, "(1, h, w, 3)"),
    "weights among the inputs": (Small, FIXED | {"change": weights_as_inputs}, "logits of 5 classes"),
    "queries": (lambda: Small(None, 6, 4), {}, "probabilities of 4 classes, made of queries' classes and masks"),
    "bytes, channels last": (OfBytes, FIXED, "(1, h, w, 3)"),
    "fp16 inside": (Small, FIXED | {"change": to_fp16}, "logits of 5 classes"),
    "int8": (Small, FIXED | {"change": to_int8}, "logits of 5 classes"),
    "lraspp_mobilenet_v3_large": (None, OLD, ""),
    "segformer": (None, {"opset_version": 23}, ""),  # with the operator Attention
    "yolo26n-sem": (None, {}, "holds labels"),
}
LONG = ("deeplabv3_mobilenet_v3_large", "Unet", "FPN")


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("form", [*FORMS, *(pytest.param(name, marks=pytest.mark.long) for name in LONG)])
def test_a_wrapped_network_gives_its_own_probabilities(form, tmp_path, capsys):
    """A library's export, or a graph of its form, against the network in torch."""
    make, options, said = FORMS.get(form, (None, {}, ""))
    network = (make() if make else Plain(build(form))).eval()
    options = {"external_data": False, "opset_version": 18} | options
    change = options.pop("change", None)
    of_bytes = isinstance(network, OfBytes)
    shape = (1, 64, 96, 3) if isinstance(network, OfBytes | ChannelsLast) else (1, 3, 64, 96)
    example = torch.zeros(shape, dtype=torch.uint8 if of_bytes else torch.float32)
    torch.onnx.export(network, (example,), tmp_path / "other.onnx", verbose=False, **options)
    if change:
        change(tmp_path / "other.onnx")
    output, frame = tmp_path / "mine.onnx", frames(64, 96, 1)
    flags = [] if of_bytes else [*NORMALISED, *(["--size", "64x96"] if "dynamic_axes" in options else [])]
    words = ["wrap", str(tmp_path / "other.onnx"), "-o", str(output)]
    if of_bytes:  # a second normalisation passed the proof with labels of noise
        assert "normalises them itself" in one_line_error(capsys, *words, *NORMALISED)
    assert main([*words, *flags]) == 0
    assert said in capsys.readouterr().err
    (maps,) = run(output, frame)
    image = Normalize(MEAN, STD)(torch.from_numpy(frame[0].image).permute(2, 0, 1)[None])
    with torch.no_grad():
        logits = network.logits(image)
    if logits.shape[-1] < 48:  # enlarged to a half
        logits = F.interpolate(logits, (32, 48), mode="bilinear", align_corners=False)
    probs = torch.softmax(logits, 1)[0].numpy()
    bound = {"fp16 inside": 5e-3, "int8": 0.1}.get(form, 1e-4)
    assert maps.probs is not None and np.abs(maps.probs - probs).max() < bound
    if probs.shape[-1] == 96:
        assert (maps.label == probs.argmax(0)).mean() > (0.999 if bound < 1e-3 else 0.9)


def test_an_output_is_chosen_by_its_name(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "other.onnx"
    names = {"output_names": ["small", "large"], "opset_version": 18}
    two = Small(lambda y: (0.1 * y, y)).eval()
    torch.onnx.export(two, (torch.zeros(1, 3, 64, 96),), path, verbose=False, external_data=False, **names)
    unclear = one_line_error(capsys, "wrap", path, "-o", tmp_path / "x.onnx", *NORMALISED)
    assert "several outputs can be the logits (small (1, 5, 64, 96), large (1, 5, 64, 96)); name one" in unclear
    mine, frame = wrap(path, "--logits", "small"), frames(64, 96, 1)
    (maps,) = run(mine, frame)
    assert maps.probs is not None and maps.probs.max() < 0.5
    capsys.readouterr()
    assert "has no output 'other'; it has 'small', 'large'" in one_line_error(
        capsys, "wrap", path, "-o", tmp_path / "x.onnx", *NORMALISED, "--logits", "other"
    )


@pytest.mark.parametrize("channels_last", [False, True])
def test_a_network_of_bgr_sees_the_colours_that_it_was_trained_on(tmp_path: Path, channels_last: bool) -> None:
    path, frame = foreign_onnx(tmp_path / "other.onnx", channels_last=channels_last), frames(HEIGHT, WIDTH, 1)
    turned = [replace(frame[0], image=np.ascontiguousarray(frame[0].image[..., ::-1]))]
    turns = ["--mean", *map(str, MEAN[::-1]), "--std", *map(str, STD[::-1])]
    (expected,) = run(wrap(path), turned)
    assert main(["wrap", str(path), "-o", str(tmp_path / "bgr.onnx"), "--bgr", *turns]) == 0
    (found,) = run(tmp_path / "bgr.onnx", frame)
    np.testing.assert_allclose(found.probs, expected.probs, atol=1e-4)


def second_input(model: onnx.ModelProto) -> None:
    model.graph.input.append(helper.make_tensor_value_info("state", TensorProto.FLOAT, [1]))


def external(location: str, **more: object) -> Change:
    """A change that moves the weights to another file."""

    def change(model: onnx.ModelProto) -> None:
        weights = model.graph.initializer[0]
        for key, value in {"location": location, **more}.items():
            weights.external_data.add(key=key, value=str(value))
        weights.data_location = TensorProto.EXTERNAL
        weights.ClearField("raw_data")

    return change


FREE = (1, 3, "h", "w")
REFUSED: dict[str, tuple[dict[str, Any], list[str], str]] = {
    "low threshold": ({"end": "Sigmoid", "classes": 1, "change": add_end("Greater", "", ["tenth"])}, [], "cut at 0.1"),
    "thresholds": ({"change": add_end("Greater", "", ["zero"])}, [], "logits of 3 classes, cut at 0; expected one"),
    "free size": ({"shape": FREE}, [], "so give the size to fix: --size HxW"),
    "size of one number": ({"shape": FREE}, ["--size", "64"], "expected HEIGHTxWIDTH"),
    "fixed size": ({}, ["--size", "64x64"], "works at 48x64 (height x width) alone, got --size 64x64"),
    "small": ({"shape": (1, 3, 20, 20)}, [], "other.onnx: its size is (20, 20), expected a height"),
    "layout of the output": ({"shape": (1, 3, 40, 40), "classes": 40}, [], "name the classes, or give a picture"),
    "layout of the input": ({"shape": (1, 3, 32, 3)}, [], "expected a picture [1, 3, h, w] or [1, h, w, 3]"),
    "four pictures": ({"shape": (4, 3, 48, 64)}, [], "takes 4 pictures at once"),
    "second input": ({"change": second_input}, [], "has 2 inputs ('picture', 'state')"),
    "weights of any file": ({"change": external("/etc/passwd")}, [], "expected the plain name of a file in the same"),
    "weights in a folder": ({"change": external("sub\\w")}, [], "expected the plain name of a file in the same folder"),
    "no weights": ({"change": external("absent")}, [], "absent: cannot be read (No such file or directory)"),
    "weights in a link": ({"change": external("link")}, [], "link: a link, expected the file with the weights"),
    "weights too far": ({"change": external("w", offset=8, length=400)}, [], "is outside of the file with the weights"),
    "too few weights": ({"change": external("w", length=8)}, [], "tensor 'weights' is damaged"),
    "custom operator": ({"change": add_end("Run", "evil")}, [], "operator 'Run' of the custom domain 'evil'"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_be_wrapped_is_one_line(case: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made, flags, words = REFUSED[case]
    (tmp_path / "w").write_bytes(bytes(400))
    (tmp_path / "link").symlink_to("w")
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
    assert "a graph file; this needs" in one_line_error(capsys, "export", path, "-o", tmp_path / "x.onnx")
    path = foreign_onnx(path, change=lambda model: helper.set_model_props(model, {"steadyseg_format": "1"}))
    assert "a file of steadyseg already" in one_line_error(capsys, "wrap", path, "-o", tmp_path / "x.onnx", *NORMALISED)


def test_a_network_of_one_convolution_has_no_features(tmp_path: Path) -> None:
    assert "no convolution after its first" in refusal(with_features, onnx.load(foreign_onnx(tmp_path / "a")), "a")


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
