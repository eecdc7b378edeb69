"""The pictures that a segmentation training held out: what to fit on, so that val and test report."""

import dataclasses
import json
import os
import signal
from pathlib import Path

import pytest
from made.pictures import street_folder
from refusals import error_after_work, one_line_error

from steadyseg.app.cli import main
from steadyseg.app.evaluation.calibrate_segmenter import SegmenterFits
from steadyseg.core.frame import Frame, Maps
from steadyseg.core.model.checkpoint import load_checkpoint, read_meta, save_checkpoint
from steadyseg.core.segmenter import Segmenter
from steadyseg.seg.data import moving_stills
from steadyseg.seg.networks.staged import StagedNetwork
from steadyseg.seg.pretrained import find_checkpoint

pytestmark = pytest.mark.slow
NAMES = ["a_003", "a_004", "a_005"]


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return street_folder(tmp_path_factory.mktemp("data"), {"train": range(8)}, (64, 96))


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The street's network at the size of these pictures, with a record that it held three of them out."""
    path = tmp_path_factory.mktemp("model") / "m.safetensors"
    tensors, meta = load_checkpoint(find_checkpoint("street-tiny"))
    training = meta.training | {"held_out": NAMES}
    save_checkpoint(path, tensors, dataclasses.replace(meta, height=64, width=96, training=training, calibration={}))
    return path


def test_it_is_measured_on_what_was_held_out(data: Path, model: Path, tmp_path: Path) -> None:
    report = tmp_path / "r.json"
    flags = ["--data", str(data), "--split", "held-out", "--report", str(report)]
    assert main(["evaluate", str(model), *flags]) == 0
    assert json.loads(report.read_text())["frame_list"] == NAMES
    assert main(["evaluate", str(model), *flags, "--protocol", "moving-stills", "--mode", "vq-dnn", "--overwrite"]) == 0
    assert json.loads(report.read_text())["frame_list"] == NAMES


@pytest.mark.parametrize(("mode", "frames"), [("dnn", 2), ("vq-dnn", 7)])
def test_the_network_sees_each_frame_once_and_gives_the_record_of_two_passes(
    mode, frames, data, model, tmp_path, monkeypatch
):
    """A mode of one frame needs the two labelled frames of a clip alone. A file without room computes all twice."""
    seen, drawn, counts, records = [], [], [], []
    run, warp = StagedNetwork.suffix, moving_stills.warp_still
    monkeypatch.setattr(StagedNetwork, "suffix", lambda *given: (seen.append(1), run(*given))[1])
    monkeypatch.setattr(moving_stills, "warp_still", lambda *given: (drawn.append(1), warp(*given))[1])
    for name, room in (("once", 2**32), ("twice", 0)):
        monkeypatch.setattr("steadyseg.core.evaluation.kept_logits.MAX_KEPT_BYTES", room)
        output = tmp_path / f"{name}.safetensors"
        flags = ["--data", str(data), "--split", "held-out", "--mode", mode, "--motion", "off", "-o", str(output)]
        assert main(["calibrate", str(model), *flags]) == 0
        counts.append((len(seen), len(drawn)))
        records.append(read_meta(output).calibration)
    (fit,) = records[0].values()
    assert (fit["split"], fit["protocol"], fit["mode"]) == ("held-out", "moving-stills", mode)
    looked, once, still = len(NAMES), frames * len(NAMES), 2 * (frames - 1) * len(NAMES)
    assert counts == [(looked + once, still), (2 * looked + 3 * once, 2 * still)] and records[0] == records[1]


def test_ctrl_c_names_the_place_last_and_leaves_no_file(data, model, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(SegmenterFits, "look", lambda _: None)  # the look at a few pictures before the fit
    monkeypatch.setattr(StagedNetwork, "suffix", lambda *_: os.kill(os.getpid(), signal.SIGINT))
    flags = ["--data", str(data), "--split", "held-out", "--mode", "dnn", "-o", str(tmp_path / "c.safetensors")]
    assert main(["calibrate", str(model), *flags]) == 130
    last = capsys.readouterr().err.splitlines()[-1]
    assert last == "steadyseg: interrupted at 1 of 6 (temperature); nothing of it is kept, run it again"
    assert not os.listdir(tmp_path)


@pytest.mark.parametrize(
    ("command", "place"), [("evaluate", "2 of 3 (stills dnn)"), ("calibrate", "3 of 6 (thresholds)")]
)
def test_an_interrupt_in_what_feeds_a_loop_names_the_place(command, place, data, model, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(SegmenterFits, "look", lambda _: None)  # the look at a few pictures before the fit
    step = Segmenter.step
    frames = iter(range(6))

    def interrupted(segmenter: Segmenter, frame: Frame) -> Maps:
        if next(frames) == 2:
            raise KeyboardInterrupt
        return step(segmenter, frame)

    monkeypatch.setattr(Segmenter, "step", interrupted)
    flags = ["--data", str(data), "--split", "held-out", "--mode", "dnn"]
    flags += ["-o", str(tmp_path / "c.safetensors")] if command == "calibrate" else []
    assert main([command, str(model), *flags]) == 130
    assert f"interrupted at {place}" in capsys.readouterr().err.splitlines()[-1]


def test_what_cannot_be_measured_on_is_one_line(data, model, tmp_path, capsys):
    line = one_line_error(capsys, "evaluate", "street-tiny", "--data", data)
    assert "no test or val" in line and "--split train" in line
    stream = ["--data", data, "--split", "held-out", "--protocol", "stream", "--mode", "vq-dnn"]
    assert "--protocol moving-stills" in one_line_error(capsys, "evaluate", model, *stream)
    line = error_after_work(capsys, "evaluate", "street-tiny", "--data", data, "--split", "held-out")
    assert "street-tiny" in line and "held out" in line
    other = street_folder(tmp_path / "other", {"train": range(4)}, (64, 96))
    assert "a_004" in error_after_work(capsys, "evaluate", model, "--data", other, "--split", "held-out")
