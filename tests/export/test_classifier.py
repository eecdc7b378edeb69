"""A classifier's graph file: proven, opened safely, and the same digits as its checkpoint."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
import torch
from made.classifier import ANIMALS, save_classifier, save_pictures
from made.graphs import scale_weights, skip_tracing
from made.methods import fit
from onnx import ModelProto, TensorProto, helper
from refusals import one_line_error, refusal
from test_onnx_file import META as STREAM

from steadyseg.app.cli import main
from steadyseg.app.export.classifier import proof_pictures, prove_draws
from steadyseg.classification.exported import ExportedClassifier
from steadyseg.classification.options import ClassifierOptions
from steadyseg.classification.pretrained import read_classifier
from steadyseg.core.classes import ClassList
from steadyseg.core.errors import CheckFailed
from steadyseg.core.method import Method
from steadyseg.export.file.metadata import GraphMeta
from steadyseg.export.file.onnx_file import read_onnx
from steadyseg.export.file.sessions import session_runner
from steadyseg.export.write.traced import Traced
from steadyseg.runtime.classifier import GraphClassifier

pytestmark = pytest.mark.usefixtures("checked_here")
META = replace(
    STREAM,
    kind="classifier",
    classes=ClassList.of_names(ANIMALS),
    width=8,
    method=Method("bnn", samples=4, temperature=1.25, calibrated=True),
    head_stride=1,
)


def made_model(meta: GraphMeta = META, side: int = 8, classes: int = 6, outputs: tuple[str, ...] = ()) -> ModelProto:
    """A graph with our inputs and outputs that gives every picture the same answer."""
    names = outputs or ("probs", "entropy", "disagreement")
    image = helper.make_tensor_value_info("image", TensorProto.UINT8, ["N", side, side, 3])
    nodes = [
        helper.make_node("Cast", ["image"], ["float"], to=TensorProto.FLOAT),
        helper.make_node("ReduceMean", ["float", "axes"], [names[1]], keepdims=0),
        helper.make_node("Identity", [names[1]], [names[2]]),
        helper.make_node("Unsqueeze", [names[1], "one"], ["column"]),
        helper.make_node("Expand", ["column", "shape"], [names[0]]),
    ]
    constants = [
        helper.make_tensor("axes", TensorProto.INT64, [3], [1, 2, 3]),
        helper.make_tensor("one", TensorProto.INT64, [1], [1]),
        helper.make_tensor("shape", TensorProto.INT64, [2], [1, classes]),
    ]
    values = [helper.make_tensor_value_info(names[0], TensorProto.FLOAT, ["N", classes])]
    values += [helper.make_tensor_value_info(name, TensorProto.FLOAT, ["N"]) for name in names[1:]]
    graph = helper.make_graph(nodes, "made", [image], values, constants)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10)
    helper.set_model_props(model, meta.to_props())
    return model


def opened(path: Path) -> GraphClassifier:
    return GraphClassifier(read_onnx(path))


def written(folder: Path, model: ModelProto) -> Path:
    path = folder / "made.onnx"
    path.write_bytes(model.SerializeToString())
    return path


def test_a_whole_file_opens_and_the_record_is_the_one_that_was_written(tmp_path: Path) -> None:
    path = written(tmp_path, made_model())
    assert read_onnx(path).meta == META
    found = opened(path).predict(np.full((3, 8, 8, 3), 2, np.uint8))
    assert found.probs.shape == (3, 6) and (found.probs == 2).all() and (found.member_entropy == 0).all()


def test_a_graph_that_its_record_does_not_describe_is_refused(tmp_path: Path) -> None:
    for model, words in (
        (made_model(side=9), "uint8 [N, 9, 9, 3], expected uint8 [N, 8, 8, 3]"),
        (made_model(classes=5), "probs is float [N, 5], expected float [N, 6]"),
        (made_model(outputs=("probs", "disagreement", "entropy")), "expected probs, entropy, disagreement in this"),
    ):
        assert words in refusal(opened, written(tmp_path, model))
    palette = json.dumps([[i, i, i] for i in range(6)])
    for changes, words in (
        ({"mode": "vq-bnn", "tau": "1.5"}, "dnn or bnn of a classifier"),
        ({"input_width": "9"}, "square"),
        ({"kind": "logits"}, "a void id and colours"),
        ({"void_id": "255", "palette": palette}, "none of a classifier"),
    ):
        model = made_model()
        helper.set_model_props(model, META.to_props() | changes)
        assert words in refusal(opened, written(tmp_path, model))
    graph = opened(written(tmp_path, made_model()))
    for shape, kind in (((1, 9, 8, 3), np.uint8), ((8, 8, 3), np.uint8), ((1, 8, 8, 3), np.float32)):
        assert "expected uint8 RGB pictures (B, 8, 8, 3)" in refusal(graph.predict, np.zeros(shape, kind))


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("evaluate {} --data {data} --mode dnn", "was made for mode bnn"),
        ("evaluate {} --data {data} --calibrated off", "was made for calibrated True"),
        ("evaluate {} --data {data} --backend torch", "checkpoint's name"),
        ("evaluate {} --data {data} --split held-out", "give the checkpoint"),
        ("evaluate {} --data {data} --tau 2", "--tau is for"),
        ("evaluate {} --data {data} --backend openvino --device cuda", "runs on the CPU"),
        ("video street:1:1 --model {}", "holds an image classifier"),
        ("calibrate {} --data x -o {}.onnx", "calibrate its checkpoint"),
        ("verify {}", "files of classifiers and of random dropout have none"),
    ],
)
def test_what_a_graph_file_was_not_made_for_is_one_line(tmp_path, capsys, command, words):
    data, path = save_pictures(tmp_path / "d", 1), written(tmp_path, made_model())
    assert words in one_line_error(capsys, *command.replace("{}", str(path)).format(data=data).split())


@pytest.fixture(scope="module")
def mc(tmp_path_factory: pytest.TempPathFactory) -> Path:
    record: dict[str, Any] = {"calibration": {"bnn x8": fit("bnn", 1.5, samples=8)}, "licence": "free"}
    options = ClassifierOptions("vgg11", channels=4, dropout=0.3, smoothing=True)  # few layers, since each is traced
    return save_classifier(tmp_path_factory.mktemp("mc") / "mc.safetensors", options, **record)


@pytest.fixture(scope="module")
def graphs(mc: Path) -> dict[str, Path]:
    made = {name: mc.with_name(f"{name}.onnx") for name in ("dnn", "bnn")}
    assert main(["export", str(mc), "-o", str(made["dnn"])]) == 0
    assert main(["export", str(mc), "-o", str(made["bnn"]), "--samples", "8"]) == 0
    return made


@pytest.mark.slow
def test_the_record_says_what_the_file_computes(graphs: dict[str, Path]) -> None:
    dnn, bnn = (read_onnx(graphs[name]).meta for name in ("dnn", "bnn"))
    assert (dnn.kind, dnn.method) == ("classifier", Method("dnn"))
    assert bnn.method == Method("bnn", samples=8, temperature=1.5, calibrated=True)
    assert bnn.classes.names == ANIMALS and (bnn.height, bnn.width, bnn.source, bnn.licence) == (32, 32, "mc", "free")


def measured(folder: Path, model: Path, data: Path, *flags: str) -> dict[str, Any]:
    report = folder / "report.json"
    assert main(["evaluate", str(model), "--data", str(data), "--report", str(report), "--overwrite", *flags]) == 0
    return json.loads(report.read_text())  # type: ignore[no-any-return]


@pytest.mark.slow
def test_a_dnn_file_has_its_checkpoint_s_digits(mc: Path, graphs: dict[str, Path], tmp_path: Path) -> None:
    data = save_pictures(tmp_path / "d", 10)
    checkpoint = measured(tmp_path, mc, data, "--mode", "dnn")
    for backend in ("onnxruntime", "openvino"):
        graph = measured(tmp_path, graphs["dnn"], data, "--backend", backend)
        assert graph["backend"].startswith(backend) and graph["frame_list_hash"] == checkpoint["frame_list_hash"]
        for key in ("nll", "accuracy", "top_5_accuracy", "ece", "brier", "aurc", "entropy"):
            assert graph[key] == pytest.approx(checkpoint[key], abs=2e-5), key


@pytest.mark.slow
def test_a_bnn_file_averages_passes_as_torch_does(mc: Path, graphs: dict[str, Path], tmp_path: Path) -> None:
    data = save_pictures(tmp_path / "d", 100)
    checkpoint = measured(tmp_path, mc, data, "--mode", "bnn", "--samples", "8")
    graph = measured(tmp_path, graphs["bnn"], data)
    assert (graph["mode"], graph["samples"], graph["temperature"]) == ("bnn", 8, 1.5)
    assert [row["n"] for row in graph["rows"]] == [8]
    for key in ("entropy", "disagreement"):  # other masks: near, not equal
        assert graph[key] == pytest.approx(checkpoint[key], rel=0.1) and graph[key] != checkpoint[key], key


@pytest.mark.slow
def test_every_picture_of_any_batch_gets_masks_of_its_own(graphs: dict[str, Path]) -> None:
    graph = opened(graphs["bnn"])
    picture = proof_pictures(1, 32, seed=3)
    for count in (1, 2, 6):
        probs = graph.predict(picture.repeat(count, 0)).probs
        assert len(probs.unique(dim=0)) == count
    assert not torch.equal(graph.predict(picture).probs, graph.predict(picture).probs)


@pytest.mark.slow
def test_a_graph_that_computes_something_else_leaves_no_file(mc, graphs, tmp_path, monkeypatch):
    skip_tracing(monkeypatch, graphs["dnn"], scale_weights)
    assert main(["export", str(mc), "-o", str(tmp_path / "m.onnx")]) == 1
    assert not list(tmp_path.iterdir())


@pytest.mark.slow
def test_the_proof_of_the_draws_sees_a_wrong_rate(mc: Path, graphs: dict[str, Path]) -> None:
    """The graph drops 30 %, torch drops 40 %: the same mean nearly, another variance."""
    model = read_classifier(mc)
    network, meta = model.network(), model.meta
    step = ExportedClassifier(network, meta.mean, meta.std, 8, 1.0)
    traced = Traced(step, onnx.load(graphs["bnn"]), step.signature(32))
    prove_draws(traced, 32)
    for module in network.modules():
        if hasattr(module, "rate"):
            module.rate = 0.4
    with pytest.raises(CheckFailed, match="variance ratio"):
        prove_draws(traced, 32)


@pytest.mark.long
@pytest.mark.parametrize(
    ("network", "options"),
    [
        ("alternet18", {"channels": 6, "smoothing": True}),
        ("alexnet", {"channels": 4, "smoothing": True}),
        ("preresnet18", {"channels": 4, "smoothing": True}),
        ("resnet18", {"channels": 4, "head": "gmedp"}),
        ("timm:vit_tiny_patch16_224", {"dropout": 0.1, "img_size": 32, "patch_size": 16}),
        ("timm:resnet18", {"dropout": 0.1, "smoothing": True}),
        ("vit6", {"channels": 64, "patch_size": 4, "dropout": 0.1}),
        ("vit6", {"channels": 64, "patch_size": 4, "head": "gap", "attention_window": 3}),
        ("swin6", {"channels": 32, "patch_size": 2, "dropout": 0.1}),
        ("pit6", {"channels": 32, "patch_size": 4}),
    ],
    ids=str,
)
def test_every_kind_of_network_becomes_a_file(network: str, options: dict[str, Any], tmp_path: Path) -> None:
    model = save_classifier(tmp_path / "c.safetensors", ClassifierOptions(network, **options))
    flags, output = ["--samples", "3"] if "dropout" in options else [], tmp_path / "c.onnx"
    assert main(["export", str(model), "-o", str(output), *flags]) == 0
    inputs = {"image": proof_pictures(3, 32, seed=0)}
    assert session_runner(read_onnx(output).model)(inputs)["probs"].sum(1) == pytest.approx(1, abs=1e-5)
