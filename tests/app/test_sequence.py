"""`evaluate --sequence`: all frames of a video are segmented, and labelled frames are measured. It runs on six real 30
Hz frames of CamVid, one of them labelled."""

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from refusals import error_after_work, one_line_error

from steadyseg.app.cli import main
from steadyseg.core.classes import CAMVID
from steadyseg.core.evaluation.metrics import StreamingMetrics
from steadyseg.core.frame import Frame
from steadyseg.core.method import MethodOptions
from steadyseg.runtime.open_model import open_segmenter
from steadyseg.seg.data.label_folder import open_split
from steadyseg.seg.data.sequence import open_sequence
from steadyseg.seg.evaluate import enlarge


@pytest.fixture
def camvid(data_dir: Path) -> Path:
    folder = data_dir / "camvid-seq-sample" / "datasets" / "camvid"
    if not folder.is_dir():
        pytest.skip(f"no camvid-seq-sample in {data_dir}")
    return folder


@pytest.mark.slow
def test_the_labelled_frame_is_measured_with_the_mean_over_the_frames_before_it(camvid: Path, tmp_path: Path) -> None:
    report = tmp_path / "r.json"
    flags = ["--data", str(camvid), "--split", "test", "--sequence", str(camvid / "seq"), "--report", str(report)]
    method = ["--mode", "vq-dnn", "--motion", "off", "--calibrated", "off"]
    model = "road-mobile"
    parts = ["--by", "recording", "--config", "cutoff=0.7"]
    assert main(["evaluate", model, *flags, *method, *parts]) == 0
    found = json.loads(report.read_text())
    assert (found["frames"], found["unlabelled_frames"], found["protocol"]) == (1, 5, "stream")

    split = open_split(camvid, "test")
    segmenter = open_segmenter(model, MethodOptions("dnn", calibrated=False), keep_probs=True, executor="torch")
    probs = []
    for index, path in enumerate(sorted((camvid / "seq").iterdir())[:5]):  # 7166 to 7170, which has the label
        maps = segmenter.step(Frame(np.array(Image.open(path).convert("RGB")), index, 0.0))
        probs.append(torch.from_numpy(maps.probs)[None])
    weights = np.exp(-np.arange(4, -1, -1) / 1.25)
    mean = sum(w * p for w, p in zip(weights / weights.sum(), probs, strict=True))
    label = torch.from_numpy(split[0][1][1::2, 1::2].copy())[None].long()  # the frames have half the label's size
    expected = StreamingMetrics(len(CAMVID), CAMVID.void, cutoff=0.7)
    expected.update(enlarge(mean, tuple(label.shape[1:])).float(), label)
    for key, value in expected.result().items():
        if key in ("nll", "accuracy", "miou", "ece", "acc_70", "freq_70"):
            assert found[key] == pytest.approx(value, abs=1e-4), key
    recording = found["recordings"]["0001TP"]
    assert recording["stretches"] == 1 and recording["miou"] == [pytest.approx(found["miou"]), None, None]


def test_a_label_without_a_frame_is_refused(camvid: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["evaluate", "road-mobile", "--data", camvid, "--sequence", camvid / "seq"]
    assert "no frame 0001TP_006870" in error_after_work(capsys, *words, "--split", "val")
    line = one_line_error(capsys, *words, "--protocol", "moving-stills")
    assert "--protocol stream" in line
    assert "no such folder" in error_after_work(capsys, *words[:-1], camvid / "nowhere", "--split", "test")


def test_numbers_are_time_and_gaps_and_recordings_break_the_stream(tmp_path: Path) -> None:
    for folder in ("test", "testannot", "seq/a"):
        (tmp_path / folder).mkdir(parents=True)
    for name in ("x_2", "x_10"):  # in the order of numbers, not of letters
        Image.new("RGB", (8, 6)).save(tmp_path / "test" / f"{name}.png")
        Image.new("L", (8, 6), 3).save(tmp_path / "testannot" / f"{name}.png")
    for name in ("x_1", "x_2", "x_5", "x_10", "x_90", "y_91"):
        Image.new("RGB", (8, 6)).save(tmp_path / "seq" / "a" / f"{name}.png")
    sequence = open_sequence(tmp_path / "seq", open_split(tmp_path, "test", CAMVID))
    frames = list(sequence.frames())
    assert sequence.names == ["x_1", "x_2", "x_5", "x_10", "x_90", "y_91"]
    assert [frame.label is not None for frame in frames] == [False, True, False, True, False, False]
    assert [frame.discontinuity for frame in frames] == [True, False, False, False, True, True]
    assert np.diff([frame.index for frame in frames]).tolist() == [1, 3, 5, 1, 1]
