"""Cityscapes in its own layout: the real frame of the sample, and faults of a copy. A training on a set in this layout
is killed, resumed, evaluated and exported."""

import json
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from made.cityscapes import write_folder
from made.trainings import TINY_SEGMENTATION, wait_for_epochs
from PIL import Image
from refusals import error_after_work, refusal

from steadyseg.app.cli import main
from steadyseg.core.classes import CAMVID
from steadyseg.core.model.checkpoint import read_meta
from steadyseg.export.file.onnx_file import read_onnx
from steadyseg.seg.data.class_file import classes_of
from steadyseg.seg.data.formats.cityscapes import CITYSCAPES
from steadyseg.seg.data.held_out import recording_of
from steadyseg.seg.data.label_folder import has_split, open_split


@pytest.fixture
def sample(data_dir: Path) -> Path:
    if not (data_dir / "cityscapes-sample").is_dir():
        pytest.skip(f"no cityscapes-sample in {data_dir}")
    return data_dir / "cityscapes-sample"


def test_the_real_frame_has_the_train_ids_that_are_published_beside_it(sample: Path) -> None:
    assert classes_of(sample, None) == CITYSCAPES and has_split(sample, "val") and not has_split(sample, "train")
    split = open_split(sample, "val", CITYSCAPES)
    (example,), (image, label) = split.examples, split[0]
    assert example.name == "frankfurt_000000_000294" and recording_of(example.name) == "frankfurt_000000"
    assert image.shape == (128, 256, 3)
    published = example.label.with_name(example.label.name.replace("labelIds", "labelTrainIds"))
    assert (label == np.array(Image.open(published))).mean() > 0.997  # the sample reduced each file by itself


def test_an_incomplete_copy_and_other_classes_are_refused(sample: Path, tmp_path: Path) -> None:
    copy = tmp_path / "city"
    shutil.copytree(sample, copy)
    assert "the classes Sky" in refusal(open_split, copy, "val", CAMVID)
    assert "holds no CITY/NAME_leftImg8bit.png" in refusal(open_split, copy, "train", CITYSCAPES)
    next((copy / "gtFine").rglob("*_labelIds.png")).unlink()
    assert "no label" in refusal(open_split, copy, "val", CITYSCAPES)


@pytest.mark.long
def test_a_set_in_that_layout_is_trained_on_killed_resumed_evaluated_and_exported(tmp_path, capsys):
    data, run, report = tmp_path / "city", tmp_path / "run", tmp_path / "r.json"
    write_folder(data, {"train": 160, "val": 40}, 64, 128, files=200)
    words = ["train", "seg", "--data", str(data), "--run", str(run), *TINY_SEGMENTATION]
    words += ["allow_missing_classes=true", "--epochs", "3"]
    process = subprocess.Popen([sys.executable, "-m", "steadyseg.app.cli", *words], stderr=subprocess.DEVNULL)
    wait_for_epochs(run, 1, process)
    process.send_signal(signal.SIGKILL)
    assert process.wait() == -signal.SIGKILL and not (run / "model.safetensors").exists()
    assert main([*words, "--resume"]) == 0
    model = run / "model.safetensors"
    meta = read_meta(model)
    assert meta.classes == CITYSCAPES and meta.training["images"] == 160 and meta.training["held_out"] == 40
    assert main(["evaluate", str(model), "--data", str(data), "--report", str(report)]) == 0
    found = json.loads(report.read_text())
    assert (found["split"], found["frames"]) == ("val", 40) and "terrain" in found["absent_classes"]
    video = data / "leftImg8bit"  # all frames of both cities; the frames of val have labels in this split
    words = ["evaluate", str(model), "--data", str(data), "--sequence", str(video), "--report", str(report)]
    assert main([*words, "--overwrite"]) == 0
    found = json.loads(report.read_text())
    assert (found["protocol"], found["frames"], found["unlabelled_frames"]) == ("stream", 40, 160)
    graph = tmp_path / "m.onnx"
    assert main(["export", str(model), "-o", str(graph)]) == 0
    assert read_onnx(graph).meta.classes == CITYSCAPES
    line = error_after_work(capsys, "evaluate", "street-tiny", "--data", data, "--split", "val")
    assert "gtFine: these labels are not of the classes Sky" in line
