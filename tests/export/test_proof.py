"""The proof of an export fails when it should: nothing is written and the exit code is 1."""

import contextlib
from pathlib import Path

import numpy as np
import onnx
import pytest
import torch
from made.graphs import HEIGHT, WIDTH, Graphs, scale_weights, skip_tracing
from made.methods import opened_by_torch
from refusals import one_line_error

from steadyseg.app.cli import main
from steadyseg.app.export.segmenter import resize_agreement
from steadyseg.core.errors import CheckFailed
from steadyseg.export.file.onnx_file import read_onnx
from steadyseg.export.run.sessions import Arrays, session_runner
from steadyseg.export.write.proof import compare_draws, prove_stream
from steadyseg.export.write.stream_run import RESET_AT, stream_pairs
from steadyseg.export.write.traced import Traced
from steadyseg.seg.exported import ExportedStep
from steadyseg.seg.street.drive import Street

pytestmark = pytest.mark.slow


def test_a_graph_that_computes_something_else_leaves_no_file(
    graphs: Graphs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    skip_tracing(monkeypatch, graphs("vq-dnn"), scale_weights)
    flags = ["--stateful", "--motion", "off", "--size", str(HEIGHT)]
    assert main(["export", "street-tiny", *flags, "-o", str(tmp_path / "m.onnx")]) == 1
    assert not list(tmp_path.iterdir())
    assert "no file was written" in capsys.readouterr().err


def test_the_random_proof_sees_a_wrong_rate(graphs: Graphs) -> None:
    """The graph drops 20 %, torch drops 35 %: the same mean nearly, another variance. The export has
    proved the same rate."""
    torch.manual_seed(0)
    step = ExportedStep(opened_by_torch("street-tiny", mode="vq-bnn").module, HEIGHT, WIDTH)
    traced = Traced(step, onnx.load(graphs("vq-bnn")), step.signature(HEIGHT, WIDTH))
    frame = np.random.default_rng(0).integers(0, 256, (HEIGHT, WIDTH, 3), dtype=np.uint8)
    for dropout in step.dropouts:
        dropout.rate = 0.35
    with pytest.raises(CheckFailed, match="variance ratio"):
        traced.prove_draws(frame)


def test_the_proof_sees_a_stream_that_takes_what_is_anothers(graphs: Graphs, monkeypatch: pytest.MonkeyPatch) -> None:
    step = ExportedStep(opened_by_torch("street-tiny", lag=2).module, HEIGHT, WIDTH)
    signature = step.signature(HEIGHT, WIDTH, streams=None)
    frames = [frame.image for frame in Street(seed=5, height=HEIGHT, width=WIDTH).frames(RESET_AT + 2)]
    run = session_runner(onnx.load(graphs("lag")))  # its export has proved it with its own inputs
    for name in ("gap", "reset", "state_02_in"):

        def mixed_up(arrays: Arrays, name: str = name) -> Arrays:
            return run(arrays | {name: np.roll(arrays[name], 1, axis=0)})

        with pytest.raises(CheckFailed, match="does not compute what torch computes"):
            prove_stream(stream_pairs(step, mixed_up, signature, frames), signature.outputs[4])
    flipped = staticmethod(lambda arrays: run(arrays | {"frame": arrays["frame"][:, ::-1]}))
    monkeypatch.setattr(Traced, "runner", flipped)
    with pytest.raises(CheckFailed, match="resizes otherwise than torch"):  # the first two calls give maps of no frame
        resize_agreement(Traced(step, onnx.ModelProto(), signature), frames[0], lag=2)


def test_equal_labels_alone_prove_nothing() -> None:
    shades = dict.fromkeys(("label", "confidence", "entropy", "disagreement"), np.ones((1, 2, 2), np.uint8))
    expected = shades | {"probs": np.full((1, 2, 2, 2), 0.5, np.float32)}
    for apart, holds in ((5e-5, True), (2e-4, False)):
        pairs = iter([(expected, expected | {"probs": expected["probs"] + np.float32(apart)})])
        with contextlib.nullcontext() if holds else pytest.raises(CheckFailed, match="does not compute what torch"):
            prove_stream(pairs, "probs")


def test_the_random_proof_sees_streams_that_share_their_masks() -> None:
    generator = np.random.default_rng(0)
    ours, theirs = ([generator.random((2, 400)) for _ in range(32)] for _ in range(2))
    assert "correlation of two streams" in str(compare_draws(ours, theirs))
    with pytest.raises(CheckFailed, match=r"correlation of two streams 1\.00"):
        compare_draws(ours, [np.repeat(draw[:1], 2, axis=0) for draw in theirs])


@pytest.mark.long
def test_a_file_of_two_streams_is_proven_and_is_none_for_a_video(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "two.onnx"
    flags = ["--stateful", "--streams", "2", "--mode", "vq-bnn", "--size", str(HEIGHT)]
    assert main(["export", "street-tiny", *flags, "-o", str(path)]) == 0
    said = capsys.readouterr().err
    assert "proof of 2 streams a call" in said and "correlation of two streams" in said
    command = ["video", "street:7:2", "--model", str(path), "-o", str(tmp_path / "v.mp4")]
    assert "computes 2 streams a call" in one_line_error(capsys, *command)


def test_masks_of_the_graph_have_the_rate_and_are_independent() -> None:
    """Rate, independence of any two elements, of two layers and of two calls, on the traced mask itself."""
    from steadyseg.core.dropout import export_mask

    torch.manual_seed(1)
    x = torch.ones(1, 12, 20, 24)
    draws = torch.stack([export_mask(x, 0.25)[0] > 0 for _ in range(400)]).double()  # (400, C, H, W)
    assert draws.mean().item() == pytest.approx(0.75, abs=0.005)
    assert draws.mean(0).std().item() == pytest.approx((0.25 * 0.75 / 400) ** 0.5, rel=0.1)  # every element alone
    flat = draws.flatten(1)
    pairs = torch.randint(0, flat.shape[1], (2, 3000))
    pairs = pairs[:, pairs[0] != pairs[1]]
    for first, second in ((flat, flat), (flat[:-1], flat[1:])):  # within a call, and from call to call
        a, b = first[:, pairs[0]] - 0.75, second[:, pairs[1]] - 0.75
        correlation = (a * b).mean(0) / (0.25 * 0.75)
        assert correlation.mean().abs().item() < 0.01
        assert correlation.std().item() == pytest.approx(1 / len(a) ** 0.5, rel=0.1)
    same_row = (draws[:, 3, 5, 2] - 0.75) * (draws[:, 3, 5, 9] - 0.75)  # they share one of the three planes
    assert abs(same_row.mean().item()) / (0.25 * 0.75) < 4 / 400**0.5


def test_the_network_alone_takes_any_batch_and_size(graphs: Graphs) -> None:
    file = read_onnx(graphs("logits"))
    assert file.meta.kind == "logits"
    run = session_runner(file.model)
    for shape in ((1, 3, 64, 96), (3, 3, 180, 256)):
        logits = run({"image": np.zeros(shape, np.float32)})["logits"]
        assert logits.shape == (shape[0], 11, *shape[2:])


@pytest.mark.long
def test_the_width_of_the_network_can_be_that_of_another_aspect(tmp_path: Path) -> None:
    path = tmp_path / "wide.onnx"
    assert main(["export", "street-tiny", "--stateful", "--size", "180x330", "-o", str(path)]) == 0
    meta = read_onnx(path).meta
    assert (meta.height, meta.width) == (180, 320)


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (["-o", "m.onnx", "--size", "180x7"], "32 pixels or more"),
        (["-o", "m.onnx", "--size", "0"], "32 pixels or more"),
        (["-o", "m.onnx", "--mode", "vq-dnn"], "no temporal mean; add --stateful"),
        (["-o", "m.onnx", "--tau", "4"], "no temporal mean; add --stateful"),
        (["-o", "m.onnx", "--size", "180 x 7"], "HEIGHT or HEIGHTxWIDTH"),
        (["-o", "m.pt"], "is a .onnx file"),
        (["-o", "nowhere/m.onnx"], "there is no folder nowhere"),
        (["-o", "m.onnx", "--streams", "2"], "add --stateful"),
        (["-o", "m.onnx", "--stateful", "--streams", "0"], "1 to 256 or dynamic"),
    ],
    ids=str,
)
def test_bad_flags_are_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], flags: list[str], words: str
) -> None:
    monkeypatch.chdir(tmp_path)
    assert words in one_line_error(capsys, "export", "street-tiny", *flags)
