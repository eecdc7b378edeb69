"""The proof of an export fails when it should: the file, written before it, is removed and the exit code is 1."""

import contextlib
from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
import pytest
import torch
from made.graphs import FLAGS, HEIGHT, WIDTH, Graphs, scale_weights, skip_tracing
from made.methods import opened_by_torch

from steadyseg.app.cli import main
from steadyseg.app.export.segmenter import resize_agreement
from steadyseg.core.errors import CheckFailed
from steadyseg.export.file.onnx_file import read_onnx
from steadyseg.export.file.sessions import Arrays, session_runner
from steadyseg.export.write.proof import prove_stream
from steadyseg.export.write.stream_run import RESETS, stream_pairs
from steadyseg.export.write.traced import Traced, to_onnx
from steadyseg.seg.exported import ExportedStep, network_signature
from steadyseg.seg.networks.smp import SmpNetwork
from steadyseg.seg.options import SmpOptions
from steadyseg.seg.presets import REALTIME
from steadyseg.seg.pretrained import list_segmenters
from steadyseg.street.drive import Street

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("checked_here")]


def test_a_graph_that_computes_something_else_leaves_no_file(graphs, tmp_path, monkeypatch, capsys):
    skip_tracing(monkeypatch, graphs("vq-dnn"), scale_weights)
    flags = ["--stateful", "--motion", "off", "--size", str(HEIGHT)]
    path = tmp_path / "m.onnx"
    assert main(["export", "street-tiny", *flags, "-o", str(path)]) == 1
    assert not list(tmp_path.iterdir())
    assert "no file is left" in capsys.readouterr().err
    path.write_bytes(b"the former")
    assert main(["export", "street-tiny", *flags, "-o", str(path), "--overwrite"]) == 1
    assert path.read_bytes() == b"the former"
    assert "is the former file again" in capsys.readouterr().err


def test_the_file_is_there_while_its_proof_runs(graphs, tmp_path, monkeypatch, capsys):
    """Whoever stops a long proof has a file that opens, and is told that nothing proved it."""

    def stopped(*_: object) -> None:
        raise KeyboardInterrupt

    skip_tracing(monkeypatch, graphs("vq-dnn"))
    monkeypatch.setattr(Traced, "prove", stopped)
    path = tmp_path / "m.onnx"
    assert main(["export", "street-tiny", *FLAGS["vq-dnn"], "--size", str(HEIGHT), "-o", str(path)]) == 130
    assert read_onnx(path).meta.kind == "stream" and "not proven" in capsys.readouterr().err


def test_the_random_proof_sees_a_wrong_rate(graphs: Graphs) -> None:
    """The graph drops 20 %, torch drops 35 %: nearly the same mean, another variance."""
    torch.manual_seed(0)
    step = ExportedStep(opened_by_torch("street-tiny", mode="vq-bnn").module, HEIGHT, WIDTH)
    traced = Traced(step, onnx.load(graphs("vq-bnn")), step.signature(HEIGHT, WIDTH))
    frame = np.random.default_rng(0).integers(0, 256, (HEIGHT, WIDTH, 3), dtype=np.uint8)
    for dropout in step.dropouts:
        dropout.rate = 0.35
    with pytest.raises(CheckFailed, match="variance ratio"):
        traced.prove_draws(frame)


def test_the_proof_sees_an_input_that_is_ignored(graphs: Graphs, monkeypatch: pytest.MonkeyPatch) -> None:
    step = ExportedStep(opened_by_torch("street-tiny", motion=False).module, HEIGHT, WIDTH)
    signature = step.signature(HEIGHT, WIDTH)
    frames = [frame.image for frame in Street(seed=5, height=HEIGHT, width=WIDTH).frames(RESETS[-1] + 1)]
    run = session_runner(onnx.load(graphs("vq-dnn")))  # its export has proved it with its own inputs
    for name, value in (("gap", 1), ("reset", 0), ("state_00_in", 0)):

        def ignored(arrays: Arrays, name: str = name, value: int = value) -> Arrays:
            return run(arrays | {name: np.full_like(arrays[name], value)})

        with pytest.raises(CheckFailed, match="does not compute what torch computes"):
            prove_stream(stream_pairs(step, ignored, signature, frames), signature.outputs[4])
    flipped = staticmethod(lambda arrays: run(arrays | {"frame": arrays["frame"][:, ::-1]}))
    monkeypatch.setattr(Traced, "runner", flipped)
    with pytest.raises(CheckFailed, match="resizes otherwise than torch"):
        resize_agreement(Traced(step, onnx.ModelProto(), signature), frames[0])


def test_equal_labels_alone_prove_nothing() -> None:
    shades = dict.fromkeys(("label", "confidence", "entropy", "disagreement"), np.ones((1, 2, 2), np.uint8))
    expected = shades | {"probs": np.full((1, 2, 2, 2), 0.5, np.float32)}
    for apart, holds in ((5e-5, True), (2e-4, False)):
        pairs = iter([(expected, expected | {"probs": expected["probs"] + np.float32(apart)})])
        with contextlib.nullcontext() if holds else pytest.raises(CheckFailed, match="does not compute what torch"):
            prove_stream(pairs, "probs")


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


@pytest.mark.parametrize(
    "options",
    [
        replace(REALTIME, encoder_weights=None, encoder_smoothing=False, encoder_dropout=0.0, decoder_dropout=0.0),
        pytest.param(SmpOptions("FPN", decoder_dropout=0.0), marks=pytest.mark.long),
    ],
    ids=["one pixel is left of 32", "padded to a multiple of 32"],
)
def test_a_network_of_the_library_equals_torch_at_any_size(options: SmpOptions) -> None:
    torch.manual_seed(0)
    network = SmpNetwork(5, options).eval()
    run = session_runner(to_onnx(network, network_signature(90, 128)))
    for shape in ((1, 3, 32, 32), (2, 3, 33, 32), (1, 3, 47, 65), (1, 3, 96, 64)):
        image = torch.randn(shape)
        with torch.no_grad():
            np.testing.assert_allclose(run({"image": image.numpy()})["logits"], network(image), rtol=0, atol=1e-4)


@pytest.mark.long
@pytest.mark.parametrize("name", list_segmenters())
def test_every_included_network_is_exported_alone(name: str, tmp_path: Path) -> None:
    assert main(["export", name, "-o", str(tmp_path / "m.onnx")]) == 0
    meta = read_onnx(tmp_path / "m.onnx").meta
    assert (meta.kind, meta.source) == ("logits", name)


@pytest.mark.long
def test_the_width_of_the_network_can_be_that_of_another_aspect(tmp_path: Path) -> None:
    path = tmp_path / "wide.onnx"
    assert main(["export", "street-tiny", "--stateful", "--size", "180x330", "-o", str(path)]) == 0
    meta = read_onnx(path).meta
    assert (meta.height, meta.width) == (180, 320)
