"""A frame whose logits are NaN or infinite is fully uncertain, counted, and left out of the mean, in every backend."""

import math
from collections import Counter
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from made.methods import method
from made.poison import CLASSES, HEIGHT, POISON, WIDTH, Poisoned, pictures, without

from steadyseg.app.export.steady import TorchNetwork, cpu_backend
from steadyseg.app.sources.source import SourceInfo
from steadyseg.app.video.report import StreamReport
from steadyseg.core.classes import ClassList, distinct_colors
from steadyseg.core.errors import CheckFailed
from steadyseg.core.frame import FrameScores, Maps
from steadyseg.core.method import Method
from steadyseg.core.model.checkpoint import CheckpointMeta
from steadyseg.core.reference import ReferenceScores
from steadyseg.core.segmenter import Backend, Segmenter, segment
from steadyseg.export.file.metadata import GraphMeta
from steadyseg.export.file.onnx_file import check_onnx
from steadyseg.export.file.sessions import openvino_runner, session_runner
from steadyseg.export.write.traced import Traced, trace
from steadyseg.runtime.graph_backend import GraphBackend
from steadyseg.runtime.torch_backend import TorchBackend
from steadyseg.seg.exported import ExportedStep
from steadyseg.seg.streaming import StreamingSegmenter

BAD = 2
NAMES = ClassList(tuple("abcd"), distinct_colors(CLASSES))
MEAN, STD = (0.0, 0.0, 0.0), (1.0, 1.0, 1.0)
METHODS = {
    "dnn": method("dnn"),
    "bnn": method("bnn", samples=3),
    "vq-dnn": method("vq-dnn"),
    "motion": method("vq-dnn", motion=True, tau=8.0),
    "vq-bnn": method("vq-bnn"),
    "vq-bnn of 3": method("vq-bnn", samples=3),
}
CASES = {name: ("infinity", 2) if place % 2 else ("nan", 1) for place, name in enumerate(METHODS)}
GRAPHS = ("motion",)
"""The graphs of the other methods are long tests, 15 CPU seconds each."""
RUNS = [(backend, name) for backend in ("torch", "kernel") for name in METHODS] + [
    pytest.param("graph", name, marks=pytest.mark.slow if name in GRAPHS else pytest.mark.long) for name in METHODS
]


def module(of: Method, value: str, stride: int) -> StreamingSegmenter:
    made = StreamingSegmenter(Poisoned(value, stride), MEAN, STD, HEIGHT, of).eval()
    made.fixed_size = HEIGHT, WIDTH
    return made


@cache
def traced_case(name: str) -> Traced:
    step = ExportedStep(module(METHODS[name], *CASES[name]), HEIGHT, WIDTH)
    return trace(step, step.signature(HEIGHT, WIDTH))


def opened(backend: str, name: str) -> Backend:
    made = module(METHODS[name], *CASES[name])
    meta = CheckpointMeta("any", {}, NAMES, HEIGHT, WIDTH, MEAN, STD)
    if backend == "torch":
        return TorchBackend(made, meta, torch.device("cpu"), keep_probs=True)
    if backend == "kernel":
        return cpu_backend("kernel", lambda height, width: TorchNetwork(made), made, meta, True, "")
    head = {"head_stride": made.head_stride, "precision": "fp32", "source": "x", "source_sha256": "0" * 64}
    about: dict[str, Any] = {"kind": "stream", "versions": {}, "licence": "", **head}
    graph_meta = GraphMeta(classes=NAMES, height=HEIGHT, width=WIDTH, mean=MEAN, std=STD, method=made.method, **about)
    data = traced_case(name).model(graph_meta).SerializeToString()
    check_onnx(data, Path("poisoned.onnx"))
    return GraphBackend(data, graph_meta, "cpu", keep_probs=True)


def run(segmenter: Segmenter, frames: list[Any]) -> dict[int, Maps]:
    segmenter.reset()
    return {frame.index: maps for frame, maps in segment(frames, segmenter)}


@pytest.mark.parametrize(("backend", "name"), RUNS)
def test_the_mean_goes_on_as_if_the_frame_had_been_dropped(backend: str, name: str) -> None:
    segmenter, frames = Segmenter(opened(backend, name)), pictures(6, BAD)
    dropped = run(segmenter, without(frames, BAD))
    assert not segmenter.resets
    found = run(segmenter, frames)
    assert segmenter.resets == {"not_finite": 1}
    bad = found[BAD]
    assert not bad.confidence.any() and (bad.entropy == 255).all() and (bad.disagreement == 255).all()
    assert bad.probs is not None and (bad.probs == np.float32(1 / CLASSES)).all()
    np.testing.assert_array_equal(bad.label, found[BAD - 1].label if METHODS[name].tau else 0 * bad.label)
    for index in range(BAD + 1, 6):
        ours, theirs = found[index], dropped[index]
        assert ours.finite and ours.probs is not None and theirs.probs is not None
        np.testing.assert_allclose(ours.probs, theirs.probs, atol=5e-5)
        assert (ours.label == theirs.label).mean() > 0.999 and len(np.unique(ours.label)) == 2
        for shade in ("confidence", "entropy", "disagreement"):
            assert np.abs(getattr(ours, shade).astype(int) - getattr(theirs, shade)).max() <= 1, shade


def test_the_report_says_how_many_frames_had_no_answer() -> None:
    segmenter, report = Segmenter(opened("torch", "vq-dnn")), StreamReport(NAMES)
    for frame, maps in segment(pictures(6, BAD), segmenter):
        report.update(frame, maps)
    source: Any = SimpleNamespace(losses=Counter(), info=SourceInfo("x", WIDTH, HEIGHT, 25.0, 6, False))
    record = report.record(segmenter, source, ())
    assert record["resets"] == {"not_finite": 1} and "1 of 6 frames had NaN or infinite logits" in record["notes"][0]


@pytest.mark.slow
@pytest.mark.parametrize("name", [pytest.param("vq-dnn", marks=pytest.mark.long), "motion"])
def test_a_spoilt_frame_leaves_the_states_finite(name: str) -> None:
    """It holds in ONNX Runtime and in OpenVINO, which runs the whole graph too."""
    model = traced_case(name)
    runs, example = [], dict(zip(model.signature.inputs, model.signature.example, strict=True))
    for runner in (session_runner(model.graph), openvino_runner(model.graph.SerializeToString())):
        feed, outputs = {key: value.numpy() for key, value in example.items()}, []
        for one in pictures(6, BAD):
            got = runner(feed | {"frame": one.image[None]})
            feed |= {key: got[key.removesuffix("_in") + "_out"] for key in feed if key.startswith("state_")}
            outputs.append(got)
        runs.append(outputs)
    for ours, theirs in zip(*runs, strict=True):
        assert all(np.isfinite(ours[key]).all() for key in ours if key.startswith("state_"))
        np.testing.assert_allclose(ours["state_00_out"], theirs["state_00_out"], atol=1e-4)
        assert np.abs(ours["entropy"].astype(int) - theirs["entropy"]).max() <= 1
    unsure = [bool((got["confidence"] == 0).all()) for got in runs[0]]
    assert unsure == [index == BAD for index in range(6)]


@pytest.mark.slow
def test_no_graph_is_proven_by_a_frame_without_an_answer() -> None:
    model = traced_case("motion")
    model.prove([frame.image for frame in pictures(6, -1)])
    with pytest.raises(CheckFailed, match="does not compute what torch computes"):
        model.prove([frame.image for frame in pictures(6, BAD)])


def test_a_frame_without_an_answer_is_novel_and_left_out_of_the_mean_familiarity() -> None:
    backend = opened("torch", "vq-dnn")
    backend.reference, compute = ReferenceScores(tuple(map(float, range(40)))), backend.compute

    def scored(image: np.ndarray, gap: int, motion: Any) -> tuple[Maps, FrameScores]:
        score = math.nan if tuple(image[0, 0]) == POISON else float(image[0, 0, 0] % 40)
        return compute(image, gap, motion)[0], FrameScores(score, np.zeros((4, 4), np.float32))

    backend.compute = scored  # type: ignore[method-assign]
    segmenter, frames = Segmenter(backend), pictures(6, BAD)
    dropped, found = run(segmenter, without(frames, BAD)), run(segmenter, frames)
    assert found[BAD].familiarity == pytest.approx(1 / 41)
    assert [found[index].familiarity for index in dropped] == [maps.familiarity for maps in dropped.values()]


def test_a_graph_leaves_it_out_of_the_mean_familiarity_too() -> None:
    made = module(METHODS["vq-dnn"], "nan", 1)
    step = ExportedStep(made, HEIGHT, WIDTH, reference=ReferenceScores(tuple(map(float, range(40)))))
    batch = torch.from_numpy(np.stack([frame.image for frame in pictures(2, 1)]))
    outputs, _ = made(batch, None)
    energy = torch.tensor([0.5, math.nan]).reshape(2, 1, 1).expand(2, 4, 4)
    scores = FrameScores(torch.tensor([7.0, math.nan]), energy)
    before = torch.tensor([[3.0, 1.5], [3.0, 1.5]])
    after, (share, accuracy, shades) = step._familiarity_outputs(outputs, scores, before, torch.ones(2, 1))
    mass = 1.5 * math.exp(-1 / 1.25)
    torch.testing.assert_close(after, torch.tensor([[3.0 + 4.0 / (1.0 + mass), 1.0 + mass], [3.0, mass]]))
    assert share[1].item() == pytest.approx(1 / 41) and share[0] > 0.5 and accuracy[1] == 0
    assert shades[:, 0, 0].tolist() == [64, 255]
