"""`video --grid`: methods side by side have the same metrics as alone, and refusals."""

import json
from pathlib import Path

import av
import pytest
from made.graphs import HEIGHT
from refusals import one_line_error

from steadyseg.app.cli import main
from steadyseg.app.video.grid import Column
from steadyseg.app.video.legend import Legend
from steadyseg.app.video.views import SCALES
from steadyseg.core.classes import CAMVID
from steadyseg.core.errors import InputError
from steadyseg.core.frame import Frame, Maps

SIZE = ("--model", "street-tiny", "--size", str(HEIGHT))


@pytest.mark.long
def test_the_methods_of_a_grid_have_the_figures_that_each_has_alone(tmp_path: Path) -> None:
    grid, report, single = (tmp_path / name for name in ("g.mp4", "g.json", "s.json"))
    words = ["--grid", "dnn,bnn,vq-dnn,vq-bnn", "--samples", "2", "--report", str(report)]
    assert main(["video", "street:7:5", *SIZE, *words, "-o", str(grid)]) == 0
    with av.open(str(grid)) as video:
        shapes = [frame.to_ndarray(format="rgb24").shape for frame in video.decode(video=0)]
    cells = 2 * 360 + 22  # half of 480 pixels would be too narrow for a cell
    assert shapes == [(Legend(CAMVID, (None, SCALES["uncertainty"])).size(4 * 480, cells)[1], 4 * 480, 3)] * 5
    methods = json.loads(report.read_text())["methods"]
    assert list(methods) == ["dnn", "bnn", "vq-dnn", "vq-bnn"]
    for mode in ("dnn", "vq-dnn"):
        flags = ["--mode", mode, "--report", str(single), "--overwrite"]
        assert main(["video", "street:7:5", *SIZE, *flags]) == 0
        alone = json.loads(single.read_text())
        for key in ("nll", "accuracy", "mean_entropy"):
            assert methods[mode][key] == pytest.approx(alone[key], rel=1e-6), key
    assert methods["bnn"]["samples"] == 2


def test_an_interruption_before_the_first_frame_ends_quietly(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("steadyseg.app.video.grid.Column.step", interrupted)
    words = ["--grid", "dnn,vq-dnn", "-o", str(tmp_path / "g.mp4")]
    assert main(["video", "street:7:5", *SIZE, *words, "--executor", "torch"]) == 130
    said = capsys.readouterr()
    assert "Traceback" not in said.err and "interrupted: what was done until then is whole" in said.err


def test_a_source_that_ends_early_leaves_video_and_report(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    step, report = Column.step, tmp_path / "r.json"

    def gone(self: Column, frame: Frame) -> Maps:
        if frame.index == 3:
            raise InputError("camera: lost")
        return step(self, frame)

    monkeypatch.setattr(Column, "step", gone)
    words = ["--grid", "dnn,vq-dnn", "--report", str(report), "-o", str(tmp_path / "g.mp4")]
    assert main(["video", "street:7:5", *SIZE, *words, "--executor", "torch", "--config", "legend=false"]) == 2
    assert "camera: lost" in capsys.readouterr().err
    methods = json.loads(report.read_text())["methods"]
    assert methods["dnn"]["frames"] == 3 and 0 < methods["vq-dnn"]["flicker"] < methods["dnn"]["flicker"]
    with av.open(str(tmp_path / "g.mp4")) as video:
        assert [frame.height for frame in video.decode(video=0)] == 3 * [2 * 360 + 22], "no legend"


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (["--grid", "dnn,all", "-o", "g.mp4"], "got 'dnn,all'"),
        (["--grid", "dnn,dnn", "-o", "g.mp4"], "each once"),
        (["--grid", "dnn,bnn"], "name its file"),
        (["--grid", "dnn", "-o", "g.mp4", "--config", "low_accuracy=80"], "low_accuracy must lie in 0..1"),
        (["--grid", "dnn", "--mode", "dnn", "-o", "g.mp4"], "--mode is for one method"),
        (["--grid", "vq-dnn", "--lag", "1", "-o", "g.mp4"], "--lag is for one method"),
    ],
    ids=str,
)
def test_what_does_not_go_together_is_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], flags: list[str], words: str
) -> None:
    monkeypatch.chdir(tmp_path)
    assert words in one_line_error(capsys, "video", "street:7:3", *flags)
