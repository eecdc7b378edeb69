"""Every backend computes what the torch module computes, on real graph files and over broken streams."""

import dataclasses
import itertools
import os
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np
import onnx
import pytest
import torch
from made.graphs import HEIGHT, WIDTH, Graphs
from made.methods import opened
from refusals import refusal

from steadyseg import steady
from steadyseg.app.export.steady import cpu_backend
from steadyseg.core.frame import Frame, Maps
from steadyseg.core.method import MethodOptions
from steadyseg.core.segmenter import Segmenter, segment
from steadyseg.core.system.machine import training_precision
from steadyseg.export.file.onnx_file import read_onnx
from steadyseg.export.file.sessions import session_runner
from steadyseg.runtime.choose import torch_precision
from steadyseg.runtime.conversion import convert
from steadyseg.runtime.graph_backend import GraphBackend, GraphStream
from steadyseg.runtime.networks import FrameNetwork, OpenVinoPasses, frame_network
from steadyseg.seg.pretrained import read_segmenter
from steadyseg.seg.streaming import StreamingSegmenter
from steadyseg.street.drive import Street
from steadyseg.studies.performance.backends import WholePasses

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("checked_here")]

PROJECT = Path(__file__).parents[2]


SHIPPED = 180, 320
"""A size of frames at which street-tiny's graphs ship; at three quarters of the width they do too."""


def frames(height: int = HEIGHT, width: int = WIDTH, count: int = 12) -> Iterator[Frame]:
    """The street with a dropped block, a cut and a change of size."""
    for frame in Street(seed=3, height=height, width=width).frames(count):
        index = frame.index + (4 if frame.index >= 5 else 0)
        image = frame.image[:, : 3 * width // 4] if frame.index >= 10 else frame.image
        yield dataclasses.replace(frame, image=image, index=index, discontinuity=frame.index == 8, label=None)


def run(segmenter: Segmenter, stream: Iterable[Frame]) -> list[Maps]:
    return [maps for _, maps in segment(stream, segmenter)]


def assert_same(
    ours: list[Maps], theirs: list[Maps], labels: float = 0.999, probs: float = 1e-4, level: int = 1
) -> None:
    for a, b in zip(ours, theirs, strict=True):
        assert (a.label == b.label).mean() >= labels
        for name in ("confidence", "entropy", "disagreement"):
            assert np.abs(getattr(a, name).astype(int) - getattr(b, name).astype(int)).max() <= level, name
        assert a.probs is not None and b.probs is not None
        assert np.abs(a.probs - b.probs).max() <= probs


def steadied(model: str, size: int) -> Segmenter:
    """`steady` of a network of ours; it is to have our method too."""
    own = read_segmenter(model)
    given = {"mean": own.meta.mean, "std": own.meta.std, "classes": own.meta.classes, "size": size}
    temperature = MethodOptions().resolve(own.meta).temperature
    return steady(own.network(), **given, temperature=temperature, device="cpu", keep_probs=True)


WAYS = {
    "checkpoint by openvino": ("", "openvino"),
    "steady": ("", "steady"),
    "graph with motion by openvino": ("motion", "openvino"),
    "graph by onnxruntime": ("vq-dnn", "onnxruntime"),
    "graph with motion, whole": ("motion", "whole"),
    "graph of single frames, whole": ("dnn", "whole"),
}
"""The graph file, if it is none of a checkpoint, and what runs it."""


@pytest.mark.parametrize(
    "way", [pytest.param(way, marks=pytest.mark.long) if "single" in way else way for way in WAYS], ids=str
)
def test_a_frame_is_what_torch_makes_of_it(graphs: Graphs, way: str) -> None:
    """Over a dropped block, a cut, and a change of size where the way takes one: a graph file has one network size."""
    name, backend = WAYS[way]
    stream, flags = list(frames()), {}
    if name:
        file = read_onnx(graphs(name))
        made = file.meta.method
        assert (made.mode, made.motion) == ("dnn" if name == "dnn" else "vq-dnn", name == "motion")
        flags = {"mode": made.mode, "motion": made.motion, "calibrated": made.calibrated}
        stream = [frame for frame in stream if frame.image.shape[1] == WIDTH]
    if backend == "whole":
        other = Segmenter(GraphBackend(file.data, file.meta, "cpu", keep_probs=True))
    elif backend == "steady":
        other = steadied("street-tiny", HEIGHT)
    else:
        size = {} if name else {"size": HEIGHT}
        number = "auto" if backend == "onnxruntime" else "fp32"
        other = opened(
            str(file.path) if name else "street-tiny", backend=backend, keep_probs=True, precision=number, **size
        )
        assert backend in other.backend
    torch_one = opened("street-tiny", backend="torch", size=HEIGHT, keep_probs=True, **flags)
    ours = run(torch_one, stream)
    assert len(ours) == (10 if name else 12) and str(other.method) == str(torch_one.method)
    assert_same(ours, run(other, stream), probs=2e-4 if backend == "steady" else 1e-4)
    assert other.resets == torch_one.resets == {"discontinuity": 1} | ({} if name else {"size_change": 1})


@pytest.mark.parametrize("kind", ["graph", "checkpoint"])
def test_dropout_draws_anew_for_every_call(graphs: Graphs, kind: str) -> None:
    flags = {"mode": "bnn", "samples": 4, "backend": "openvino"} if kind == "checkpoint" else {}
    segmenter = opened("street-tiny" if flags else str(graphs("vq-bnn")), keep_probs=True, **flags)
    frame = next(frames(*SHIPPED) if flags else frames())
    probs = [segmenter.step(dataclasses.replace(frame, discontinuity=True)).probs for _ in range(2)]
    assert np.abs(probs[0] - probs[1]).max() > 1e-3
    np.testing.assert_allclose(probs[0].sum(0), 1.0, atol=1e-3)


@pytest.mark.long
@pytest.mark.parametrize("model", ["street-tiny", "road-realtime"])
def test_passes_that_share_their_prefix_say_what_whole_ones_say(model: str) -> None:
    """The same masks in both. The realtime network draws in its encoder: it shares the padded picture alone."""
    found = []
    for wrap in (lambda network: network, WholePasses):
        torch.manual_seed(5)
        opened_model = read_segmenter(model)
        network, meta = opened_model.network(), opened_model.meta
        module = StreamingSegmenter(
            wrap(network), meta.mean, meta.std, HEIGHT, MethodOptions(mode="bnn", samples=3).resolve(meta)
        )
        shared = wrap is not WholePasses

        def opened(height: int, width: int, module: StreamingSegmenter = module, shared: bool = shared) -> FrameNetwork:
            return frame_network(convert(module, height, width, shared), "fp32")

        backend = cpu_backend("openvino", opened, module, meta, True, "")
        found.append(run(Segmenter(backend), itertools.islice(frames(), 3)))
        assert isinstance(backend._network, OpenVinoPasses) == shared
    assert_same(*found)


@pytest.mark.slow
def test_bound_memory_is_reused_and_never_handed_out(graphs: Graphs) -> None:
    """The states go on where frames get another size, outputs of earlier calls stay, and equal shapes bind once."""
    path = graphs("vq-dnn")
    stream, run = GraphStream(path.read_bytes(), read_onnx(path).meta, "cpu"), session_runner(onnx.load(path))
    states = {name: np.zeros_like(value) for name, value in stream._zeros.items()}
    kept, bindings = [], []
    for number, scale in enumerate((1, 1, 1, 2, 1)):
        frame = next(iter(Street(seed=number, height=scale * HEIGHT, width=scale * WIDTH).frames(1))).image[None]
        found = stream(frame, number, None, keep_probs=True)
        flags = {"gap": np.full((1, 1), max(number, 1)), "reset": np.full((1, 1), number == 0)}
        wanted = run({"frame": frame} | {name: value.astype(np.float32) for name, value in flags.items()} | states)
        states = {name: wanted[name.replace("_in", "_out")] for name in states}
        kept.append((found, wanted))
        bindings.append(stream._binding)
    for found, wanted in kept:
        assert np.array_equal(found["probs"], wanted["state_00_out"])
        assert all(np.array_equal(found[name], wanted[name]) for name in found if name != "probs")
    assert bindings[0] is bindings[1] is bindings[2] and len({id(one) for one in bindings}) == 3


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ({"mode": "dnn"}, "made for mode vq-dnn, got dnn"),
        ({"size": 360}, f"height {HEIGHT}, got size 360"),
        ({"backend": "torch"}, "run by onnxruntime or openvino"),
        ({"device": "cuda"}, "device cuda was asked for"),
        ({"backend": "onnxruntime", "precision": "bf16"}, "no bf16"),
        ({"precision": "fp16"}, "export --precision fp16"),
        ({"precision": "int8"}, "is for checkpoints"),
    ],
    ids=str,
)
def test_what_a_file_was_not_made_for_is_one_line(graphs: Graphs, asked: dict[str, object], words: str) -> None:
    if asked.get("device") == "cuda" and torch.cuda.is_available():
        pytest.skip("a GPU is there")
    assert words in refusal(opened, str(graphs("vq-dnn")), **asked)


@pytest.mark.parametrize(("capability", "number"), [((6, 1), "fp32"), ((7, 5), "fp16"), ((8, 0), "bf16")])
def test_a_card_computes_in_the_format_of_its_tensor_cores(capability, number, monkeypatch):
    """Pascal (6.1) has none, Turing (7.5) emulates bf16, Ampere (8.0) is the first that computes in it.

    No card is needed for the choice.
    """
    monkeypatch.setattr("torch.cuda.get_device_capability", lambda device: capability)
    card = torch.device("cuda")
    assert torch_precision("auto", card) == training_precision(card) == number


def test_a_conversion_reports_to_nobody(tmp_path: Path) -> None:
    """OpenVINO's telemetry would write a client's id to the home folder and fork processes that send it."""
    code = (
        "import os, torch\n"
        "from steadyseg.runtime.conversion import openvino_model\n"
        "forks = []; os.register_at_fork(before=lambda: forks.append(1))\n"
        "openvino_model(torch.nn.Conv2d(3, 4, 1), [torch.zeros(1, 3, 8, 8)])\n"
        "import atexit; atexit.register(lambda: print(len(forks)))"
    )
    environment = {key: value for key, value in os.environ.items() if key != "CI"} | {"HOME": str(tmp_path)}
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment, cwd=PROJECT)
    assert run.stdout.strip() == "0" and not list(tmp_path.rglob("*openvino*")), run.stderr
