"""Files that prove themselves: whole ones pass on every runtime, changed ones and broken devices fail."""

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
from steadyseg.export.run.carried_proof import PROOF_KEY, CarriedProof, enlarge, read_proof
from steadyseg.export.run.graph import GraphStream
from steadyseg.export.run.proof_run import Verified, graph_step, moments_apart, verify
from steadyseg.export.run.sessions import Arrays

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("checked_here")]


def proof_of(path: Path) -> tuple[CarriedProof, GraphMeta]:
    file = read_onnx(path)
    return read_proof(file.props, file.meta, path.name), file.meta


def verified(path: Path, change: Callable[[Arrays], Arrays] = lambda inputs: inputs) -> Verified:
    """The file on this CPU, by a client that changes the inputs."""
    proof, meta = proof_of(path)
    step = graph_step(GraphStream(path.read_bytes(), meta, "cpu"))
    return verify(proof, meta, lambda inputs: step(change(inputs)))


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.long) for name in ("vq-dnn", "motion", "proven vq-bnn")] + ["lag"]
)
@pytest.mark.parametrize("runtime", ["onnxruntime", "openvino"])
def test_a_whole_file_proves_itself(
    graphs: Graphs, name: str, runtime: str, capsys: pytest.CaptureFixture[str]
) -> None:
    path = graphs(name)
    capsys.readouterr()
    assert main(["verify", str(path), "--runtime", runtime, "--device", "cpu"]) == 0
    told = capsys.readouterr().out
    assert "equal within the file's own bounds: " in told and "speed: " in told and "licence: Apache-2.0" in told
    assert not {"{", "[", '"'} & set(told), "words, no JSON"
    assert ("random draws" in told) == (name == "proven vq-bnn")


@pytest.mark.parametrize("place", [0.0, 0.5, 1.0])
def test_one_changed_weight_fails(
    graphs: Graphs, tmp_path: Path, place: float, capsys: pytest.CaptureFixture[str]
) -> None:
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


@pytest.mark.long
def test_random_draws_of_another_rate_fail(graphs: Graphs) -> None:
    """The draws of a file are compared by mean and variance; here the file's own draws stand for a device's draws."""
    proof, _ = proof_of(graphs("proven vq-bnn"))
    generator = np.random.default_rng(0)
    mean, variance = proof.arrays["probability"][0], proof.arrays["probability_variance"][0]
    for scale, holds in ((1.0, True), (1.4, False)):
        noise = generator.standard_normal((proof.plan.draws, mean.size)) * np.sqrt(scale * variance)
        found = moments_apart(mean + noise, mean, variance, proof.plan.draws)
        assert Verified(found, proof.plan.bounds, 0.0).holds == holds, found


def test_the_rounding_of_fp16_is_within_its_bounds(
    graphs: Graphs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
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
    proof, _ = proof_of(graphs("motion"))
    turns = iter(range(100))
    cut = len(proof.plan.turns) - 1

    def resets_there(inputs: Arrays) -> Arrays:
        return inputs | ({"reset": np.ones((1, 1), np.float32)} if next(turns) == cut else {})

    assert not proof.plan.turns[cut].reset and verified(graphs("motion"), resets_there).holds


def test_a_pixel_that_stands_for_a_million_takes_no_more_memory_than_the_frame() -> None:
    stored = np.arange(6, dtype=np.uint8).reshape(1, 2, 3)
    assert (enlarge(stored, 2**20, (4, 6)) == stored[0, 0]).all()
    assert (enlarge(stored, 3, (3, 6))[:, :, 0] == [0, 0, 0, 3, 3, 3]).all()


@pytest.mark.parametrize(
    ("key", "text", "said"), [("proof", "{", "its proof is malformed"), ("record", "7", "no proof of version 1")]
)
def test_a_malformed_proof_is_one_line(graphs: Graphs, key: str, text: str, said: str) -> None:
    """The tests of the clients damage the other entries of a proof."""
    file = read_onnx(graphs("vq-dnn"))
    message = refusal(read_proof, file.props | {key: text}, file.meta, "broken.onnx")
    assert said in message and "broken.onnx" in message and "with-proof" in message


def test_what_has_no_proof_says_so(graphs: Graphs, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model, path = onnx.load(graphs("vq-dnn")), tmp_path / "bare.onnx"
    del model.metadata_props[[entry.key for entry in model.metadata_props].index(PROOF_KEY)]
    onnx.save(model, path)
    capsys.readouterr()  # what the export printed
    assert "carries no proof; export it with --stateful --with-proof" in one_line_error(capsys, "verify", path)
    for flags in ([], ["--target", "web"]):
        words = ["export", "street-tiny", "--with-proof", *flags, "-o", tmp_path / "x"]
        assert "--with-proof is for one graph file with a state" in one_line_error(capsys, *words)
    both = ["verify", path, "--runtime", "openvino", "--device", "cuda"]
    assert refusal(read_proof, {}, read_onnx(path).meta, "x") and "cuda" in one_line_error(capsys, *both)


def test_a_graph_that_fails_its_own_proof_is_not_written(
    graphs: Graphs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    skip_tracing(monkeypatch, graphs("vq-dnn"))

    def other(proof: CarriedProof, *arguments: object, **named: object) -> Verified:
        return replace(Verified({"labels_equal": 0.5}, proof.plan.bounds, 1.0))

    monkeypatch.setattr("steadyseg.app.export.carried_proof.verify", other)
    flags = [*FLAGS["vq-dnn"], "--size", str(HEIGHT)]
    words = ["export", "street-tiny", *flags, "-o", tmp_path / "x.onnx"]
    assert "fails the proof that it would carry" in error_after_work(capsys, *words, code=1)
    assert not (tmp_path / "x.onnx").exists()
