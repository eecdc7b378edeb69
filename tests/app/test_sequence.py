"""Parts of an evaluation: a video with some labelled frames, and figures by recording."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from refusals import error_after_work, one_line_error

from steadyseg.app.cli import main
from steadyseg.app.evaluation.data import EvaluationFrames
from steadyseg.app.evaluation.evaluate_segmenter import ExpectedMetrics
from steadyseg.app.evaluation.recordings import RecordingMetrics, percent_with_interval
from steadyseg.core.classes import CAMVID, ClassList
from steadyseg.core.evaluation.metrics import StreamingMetrics
from steadyseg.core.frame import Frame, Maps
from steadyseg.core.method import MethodOptions
from steadyseg.runtime.open_model import open_segmenter
from steadyseg.seg.data.label_folder import open_split
from steadyseg.seg.data.sequence import open_sequence
from steadyseg.seg.evaluate import FrameMetrics, enlarge


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
    segmenter = open_segmenter(model, MethodOptions("dnn", calibrated=False), keep_probs=True, backend="torch")
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


TWO_CLASSES = ClassList(("a", "b"), ((0, 0, 0), (9, 9, 9)), void=2)


def seen(right: float) -> tuple[Frame, Maps]:
    """A frame of class a whose first pixels, a share of `right`, are predicted rightly with a confidence of 0.75."""
    label = np.zeros((10, 10), np.uint8)
    a = np.where(np.arange(100).reshape(10, 10) < 100 * right, 0.75, 0.25).astype(np.float32)
    maps = Maps((a < 0.5).astype(np.uint8), *(np.zeros_like(label) for _ in range(3)), np.stack([a, 1 - a]))
    return Frame(np.zeros((10, 10, 3), np.uint8), 0, 0.0, label), maps


def test_the_expected_accuracy_is_compared_with_that_of_labelled_pixels() -> None:
    metrics = ExpectedMetrics(TWO_CLASSES.void_id)
    assert metrics.record() == {}
    for familiarity, expected in ((0.04, 0.9), (0.5, 0.75), (0.05, 0.825), (None, 0.1)):
        frame, maps = seen(0.8)
        metrics.update(frame, replace(maps, familiarity=familiarity, expected_accuracy=expected))
    metrics.update(replace(frame, label=np.full_like(frame.label, TWO_CLASSES.void_id)), replace(maps, familiarity=0.9))
    found = metrics.record()
    assert (found["novel_share"], found["familiarity_p50"]) == (pytest.approx(2 / 3), 0.05)
    assert found["expected_accuracy_gap"] == pytest.approx(0.025)  # of 0.1, -0.05 and 0.025
    assert found["expected_accuracy_error"] == pytest.approx(0.175 / 3)


def test_a_frame_of_another_size_starts_anew() -> None:
    """A stream of two picture sizes ended in an internal message."""
    metrics, (frame, maps) = FrameMetrics.of(TWO_CLASSES), seen(0.8)
    small = replace(frame, image=frame.image[:8], label=frame.label[:8])
    for index, (one, size) in enumerate(((frame, 10), (frame, 10), (small, 8), (small, 8))):
        metrics.update(replace(one, index=index), replace(maps, probs=maps.probs[:, :size]))
    assert metrics.result()["consistency_pairs"] == 2


def test_stretches_are_of_one_recording_and_drawn_as_a_whole() -> None:
    names = [f"one_{number:03d}" for number in range(20)] + ["all_f001", "all_f002"]
    metrics = RecordingMetrics(EvaluationFrames(names, "", iter(()), len(names)), TWO_CLASSES)
    for place in range(22):
        metrics.update(place, *seen(0.9 if place < 10 else 0.5 if place < 20 else 0.8))
    found = metrics.result()
    assert {name: row["stretches"] for name, row in found.items()} == {"one": 2, "all": 1, "all recordings": 3}
    # Two blocks of equal size: both drawn twice are 0.9 and 0.5, one time in four each.
    assert found["one"]["accuracy"] == pytest.approx((0.7, 0.5, 0.9))
    assert found["one"]["ece"] == pytest.approx((0.05, 0.05, 0.25))  # of both together; the second alone
    assert found["all"]["accuracy"] == (pytest.approx(0.8), None, None)  # it was said to lie in 0.8 to 0.8
    assert percent_with_interval(*found["all"]["accuracy"]) == "80.0 (one stretch)"
    assert found["all recordings"]["accuracy"][0] == pytest.approx((9 + 5 + 1.6) / 22)
