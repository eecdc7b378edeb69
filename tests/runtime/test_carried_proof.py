"""Files that prove themselves: whole ones pass on every runtime, changed ones and broken devices fail."""

import base64
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
import pytest
from made.graphs import FLAGS, HEIGHT, Graphs, skip_tracing
from onnx import numpy_helper
from refusals import error_after_work, one_line_error, refusal

from steadyseg.app.cli import main
from steadyseg.export.file.metadata import GraphMeta
from steadyseg.export.file.onnx_file import read_onnx
from steadyseg.export.file.sessions import Arrays
from steadyseg.runtime.carried_proof import (
    PROOF_KEY,
    TURNS,
    Verified,
    graph_step,
    inputs_of,
    read_proof,
    verify,
)
from steadyseg.runtime.graph_backend import GraphStream

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("checked_here")]


def proof_of(path: Path) -> tuple[Arrays, GraphMeta]:
    file = read_onnx(path)
    return read_proof(file.props, file.meta, path.name), file.meta


def verified(path: Path, change: Callable[[Arrays], Arrays] = lambda inputs: inputs) -> Verified:
    """The file on this CPU, by a client that changes the inputs."""
    proof, meta = proof_of(path)
    step = graph_step(GraphStream(path.read_bytes(), meta, "cpu"))
    return verify(proof, meta, lambda inputs: step(change(inputs)))


@pytest.mark.parametrize("name", [pytest.param("vq-dnn", marks=pytest.mark.long), "motion"])
@pytest.mark.parametrize("runtime", ["onnxruntime", "openvino"])
def test_a_whole_file_proves_itself(graphs, name, runtime, capsys):
    path = graphs(name)
    capsys.readouterr()
    assert main(["verify", str(path), "--runtime", runtime, "--device", "cpu"]) == 0
    told = capsys.readouterr().out
    assert "equal within the bounds: " in told and "speed: " in told and "licence: Apache-2.0" in told
    assert not {"{", "[", '"'} & set(told), "words, no JSON"


@pytest.mark.parametrize("place", [0.0, 0.5, 1.0])
def test_one_changed_weight_fails(graphs, tmp_path, place, capsys):
    """One weight of the first, a middle and the last convolution, with its sign changed."""
    model = onnx.load(graphs("vq-dnn"))
    kernels = [tensor for tensor in model.graph.initializer if len(tensor.dims) == 4]
    kernel = kernels[round(place * (len(kernels) - 1))]
    values = numpy_helper.to_array(kernel).copy()
    values.flat[np.abs(values).argmax()] *= -1
    kernel.CopyFrom(numpy_helper.from_array(values, kernel.name))
    onnx.save(model, tmp_path / "changed.onnx")
    capsys.readouterr()
    assert main(["verify", str(tmp_path / "changed.onnx"), "--device", "cpu"]) == 1
    (line,) = capsys.readouterr().err.strip().splitlines()
    assert "not equal by onnxruntime" in line


def test_the_rounding_of_fp16_is_within_its_bounds(graphs, tmp_path, monkeypatch):
    path = tmp_path / "other.onnx"
    skip_tracing(monkeypatch, graphs("vq-dnn"))
    flags = [*FLAGS["vq-dnn"], "--size", str(HEIGHT), "--precision", "fp16"]
    assert main(["export", "street-tiny", *flags, "-o", str(path)]) == 0
    assert main(["verify", str(path), "--device", "cpu"]) == 0


def test_fewer_bits_are_held_to_wider_bounds(graphs: Graphs) -> None:
    """Probabilities of bf16's 8 bits are within the wider bounds alone."""
    proof, meta = proof_of(graphs("vq-dnn"))
    step = graph_step(GraphStream(graphs("vq-dnn").read_bytes(), meta, "cpu"))

    def rounded(inputs: Arrays) -> Arrays:
        outputs = dict(step(inputs))
        probs = outputs["probs"].copy()
        probs.view(np.uint32)[...] &= 0xFFFF0000
        return outputs | {"probs": probs}

    assert not verify(proof, meta, rounded).holds
    assert verify(proof, meta, rounded, reduced=True).holds


FAULTS: dict[str, Callable[[Arrays], Arrays]] = {
    "forgets": lambda inputs: inputs | {"reset": np.ones((1, 1), np.float32)},
    "never resets": lambda inputs: inputs | {"reset": np.zeros((1, 1), np.float32)},
    "ignores gaps": lambda inputs: inputs | {"gap": np.ones((1, 1), np.float32)},
    "swaps channels": lambda inputs: inputs | {"frame": inputs["frame"][..., ::-1].copy()},
    "moves nothing": lambda inputs: inputs | {"trust": np.ones_like(inputs["trust"])},
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_client_with_a_fault_fails(graphs: Graphs, fault: str) -> None:
    found = verified(graphs("motion"), FAULTS[fault])
    assert not found.holds, found


def test_the_last_frame_is_a_cut(graphs: Graphs) -> None:
    """A device that finds no cut fails, since the frame is to be computed as after a reset."""
    turns = iter(range(100))
    cut = len(TURNS) - 1

    def resets_there(inputs: Arrays) -> Arrays:
        return inputs | ({"reset": np.ones((1, 1), np.float32)} if next(turns) == cut else {})

    assert not TURNS[cut].reset and verified(graphs("motion"), resets_there).holds


def test_a_stored_pixel_is_a_block_of_the_frame(graphs: Graphs) -> None:
    meta = replace(proof_of(graphs("motion"))[1], height=200, width=300)
    pictures = np.arange(4 * 67 * 100 * 3, dtype=np.uint8).reshape(4, 67, 100, 3)  # a block has 3 x 3 pixels
    given = inputs_of(pictures, TURNS[2], meta)
    assert given["frame"].shape == (1, 200, 300, 3) and (given["frame"][0, 199, 299] == pictures[2, 66, 99]).all()
    assert (given["frame"][0, 3:6, 6:9] == pictures[2, 1, 2]).all()
    assert given["motion"][0, 7, 5].tolist() == [5 + 3 * 1.5, 7 - 3 * 0.75] and given["trust"].min() > 0.5


@pytest.mark.parametrize(
    ("key", "text", "said"),
    [
        ("proof", "1", "its version is '1', expected '2'"),
        ("proof_label", " " * 2**21, "more than 1048576 characters"),
        ("proof_label", "AAAA", "label has 3 values"),
        ("proof_frame", "*", "its proof is malformed"),
        ("proof_probability", base64.b64encode(np.full(4, np.nan, "<f4").tobytes()).decode(), "all finite"),
    ],
)
def test_a_malformed_proof_is_one_line(graphs: Graphs, key: str, text: str, said: str) -> None:
    file = read_onnx(graphs("vq-dnn"))
    message = refusal(read_proof, file.props | {key: text}, file.meta, "broken.onnx")
    assert said in message and "broken.onnx" in message and "with-proof" in message


def test_what_has_no_proof_says_so(graphs: Graphs, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model, path = onnx.load(graphs("vq-dnn")), tmp_path / "bare.onnx"
    del model.metadata_props[[entry.key for entry in model.metadata_props].index(PROOF_KEY)]
    onnx.save(model, path)
    capsys.readouterr()  # what the export printed
    assert "carries no proof; export it with --stateful --with-proof" in one_line_error(capsys, "verify", path)
    drawn = ["export", "street-tiny", "--stateful", "--mode", "vq-bnn", "--with-proof", "-o", tmp_path / "x.onnx"]
    assert "mode vq-bnn draws random dropout; omit one" in one_line_error(capsys, *drawn)
    both = ["verify", path, "--runtime", "openvino", "--device", "cuda"]
    assert refusal(read_proof, {}, read_onnx(path).meta, "x") and "cuda" in one_line_error(capsys, *both)


def test_a_graph_that_fails_its_own_proof_is_not_written(graphs, tmp_path, monkeypatch, capsys):
    skip_tracing(monkeypatch, graphs("vq-dnn"))

    def other(proof: Arrays, *arguments: object, **named: object) -> Verified:
        return Verified({"labels_equal": 0.5}, {"labels_equal": 0.999}, 1.0)

    monkeypatch.setattr("steadyseg.app.export.carried_proof.verify", other)
    flags = [*FLAGS["vq-dnn"], "--size", str(HEIGHT)]
    words = ["export", "street-tiny", *flags, "-o", tmp_path / "x.onnx"]
    assert "fails the proof that it would carry" in error_after_work(capsys, *words, code=1)
    assert not (tmp_path / "x.onnx").exists()
