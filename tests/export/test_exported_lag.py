"""A mean with a lag in every executor and in exported files: labels and maps of the frame F calls before."""

from collections.abc import Iterable
from pathlib import Path

import pytest
from made.graphs import HEIGHT, WIDTH
from made.methods import opened
from refusals import one_line_error
from test_executors import SHIPPED, assert_same, frames

from steadyseg.app.cli import main
from steadyseg.core.frame import Frame, Maps
from steadyseg.core.segmenter import Segmenter, segment
from steadyseg.export.file.onnx_file import read_onnx
from steadyseg.export.run.graph import GraphExecutor

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("checked_here")]
LAG = 2


def run(segmenter: Segmenter, stream: Iterable[Frame]) -> list[Maps]:
    return [maps for _, maps in segment(stream, segmenter)]


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("lag") / "lag.onnx"
    flags = ["--stateful", "--lag", str(LAG), "--streams", "dynamic", "--with-proof", "--size", str(HEIGHT)]
    assert main(["export", "street-tiny", *flags, "-o", str(path)]) == 0  # proven with streams that come and go
    return path


def test_openvino_and_its_kernel_give_the_means_of_torch() -> None:
    pytest.importorskip("openvino", reason="OpenVINO is for x86-64")
    flags = {"lag": LAG, "precision": "fp32", "keep_probs": True, "calibrated": False}
    by_torch, other = (opened("street-tiny", executor=name, **flags) for name in ("torch", "openvino"))
    ours, theirs = run(by_torch, frames(*SHIPPED)), run(other, frames(*SHIPPED))
    assert len(ours) == 12
    assert_same(ours, theirs)


@pytest.mark.parametrize("executor", ["whole graph", "onnxruntime"])
def test_an_exported_file_gives_the_means_of_torch(graph: Path, executor: str) -> None:
    file = read_onnx(graph)
    assert file.meta.method.lag == LAG
    if executor == "whole graph":
        other = Segmenter(GraphExecutor(file.data, file.meta, "cpu", keep_probs=True))
    else:
        other = opened(str(graph), executor=executor, keep_probs=True)
    by_torch = opened("street-tiny", executor="torch", lag=LAG, size=HEIGHT, keep_probs=True, calibrated=False)
    stream = [frame for frame in frames() if frame.image.shape[1] == WIDTH]
    ours = run(by_torch, stream)
    assert len(ours) == 10
    assert_same(ours, run(other, stream))


@pytest.mark.long
def test_the_video_has_every_frame_and_the_metrics_of_its_own_label(tmp_path: Path, graph: Path) -> None:
    import json

    reports = []
    for name, flags in (("a", ["--model", "street-tiny", "--size", str(HEIGHT)]), ("b", ["--model", str(graph)])):
        report = tmp_path / f"{name}.json"
        words = ["video", "street:7:8", "-o", str(tmp_path / f"{name}.mp4"), "--report", str(report), "--lag", str(LAG)]
        assert main([*words, *flags, "--precision", "fp32"]) == 0
        reports.append(json.loads(report.read_text()))
    assert [record["labelled_frames"] for record in reports] == [8, 8]
    assert reports[0]["lag"] == LAG and reports[0]["accuracy"] > 0.7
    assert reports[0]["nll"] == pytest.approx(reports[1]["nll"], abs=2e-3)


def test_targets_that_show_the_newest_frame_have_no_lag(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["export", "street-tiny", "--lag", "1", "-o", tmp_path / "m"]
    assert "--target onnx" in one_line_error(capsys, *words, "--target", "web")
