"""Coarse labels from the import to a training on two folders, by the commands."""

import json
from pathlib import Path

import numpy as np
import pytest
from made.pictures import save_split
from made.trainings import TINY_SEGMENTATION, boxes_folder
from PIL import Image
from refusals import error_after_work, one_line_error

from steadyseg.app.cli import main
from steadyseg.core.classes import CAMVID
from steadyseg.core.model.checkpoint import read_meta
from steadyseg.seg.data.label_folder import open_split
from steadyseg.seg.data.within import read_choice
from steadyseg.street.drive import Street

pytestmark = pytest.mark.slow
ALL = [list(range(1, 11))] * 4


@pytest.fixture
def coarse(tmp_path: Path) -> Path:
    """A data folder of boxes: Building and Tree are told apart by no label, Sky is the ground."""
    root = boxes_folder(tmp_path / "coarse", [[1, 5, 8]] * 4, background=0)
    allows = {"0": ["Sky"], "1": ["Building", "Tree"], "5": ["Building", "Tree"], "8": ["Car"]}
    (root / "classes.json").write_text(json.dumps({"names": CAMVID.names, "allows": allows}))
    return root


def test_a_training_on_two_folders_learns_from_sets_and_choices(tmp_path: Path, coarse: Path) -> None:
    fine, run = boxes_folder(tmp_path / "fine", ALL, background=0), tmp_path / "run"
    assert main(["data", "within", str(coarse), "--model", "street-tiny"]) == 0
    split = open_split(coarse, "train", CAMVID)
    choice, label = read_choice(split, 0), split[0][1]
    assert choice is not None and (choice[..., 1] > 0).any()
    assert {*np.unique(choice[label == 0b100010][:, 0])} <= {1, 5} and not choice[label == 1, 1].any()
    flags = ["--epochs", "1", "--device", "cpu", *TINY_SEGMENTATION, f"also={coarse}", "evaluate_every=1"]
    assert main(["train", "seg", "--data", str(fine), "--run", str(run), "--hold-out", "none", *flags]) == 0
    lines = [json.loads(line) for line in (run / "log.jsonl").read_text().splitlines()]
    assert sum(line["event"] == "step" for line in lines) == 4  # 4 + 4 pictures, two a step
    assert read_meta(run / "model.safetensors").training["images"] == 8


def test_coarse_labels_are_measured_and_calibrated(tmp_path: Path) -> None:
    street, coarse = Street(seed=3, height=180, width=240), tmp_path / "coarse"
    frames = [street.frame(number) for number in range(0, 40, 10)]
    save_split(coarse, "val", [(f"{frame.index:02}", frame.image, frame.label) for frame in frames])
    allows = {str(number): [name] for number, name in enumerate(CAMVID.names)}
    allows["1"] = allows["5"] = ["Building", "Tree"]
    (coarse / "classes.json").write_text(json.dumps({"names": CAMVID.names, "allows": allows, "void": CAMVID.void}))
    report, fitted = tmp_path / "report.json", tmp_path / "fitted.safetensors"
    measured = ["--data", str(coarse), "--split", "val", "--protocol", "stills"]
    assert main(["evaluate", "street-tiny", *measured, "--report", str(report)]) == 0
    record = json.loads(report.read_text())
    iou = dict(zip(CAMVID.names, record["iou"], strict=True))
    assert iou["Building"] is None and iou["Tree"] is None and iou["Road"] > 0.8 and record["accuracy"] > 0.85
    assert main(["calibrate", "street-tiny", *measured, "-o", str(fitted)]) == 0
    fit = read_meta(fitted).calibration["dnn"]
    assert fit["nll_after"] <= fit["nll_before"] == pytest.approx(record["nll"], rel=0.1)


def test_an_import_takes_sets_for_its_classes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source, sets = tmp_path / "source", tmp_path / "allows.json"
    source.mkdir()
    Image.fromarray(np.full((8, 8, 3), [255, 0, 0], np.uint8)).save(source / "a.png")
    Image.fromarray(np.full((8, 8, 3), 90, np.uint8)).save(tmp_path / "a.jpg")
    (source / "palette.txt").write_text("road 255 0 0\nother 0 255 0\n")
    command = ["data", "import", source, "-o", tmp_path / "own", "--palette", source / "palette.txt"]
    command += ["--images", tmp_path, "--allows", sets]
    sets.write_text('{"road": ["Road"]}')
    assert "keys road, other" in error_after_work(capsys, *command)
    sets.write_text('{"road": ["Road"], "other": ["Tree", "Sky"]}')
    assert main([str(part) for part in command]) == 0
    assert open_split(tmp_path / "own", "train", CAMVID)[0][1].tolist() == [[1 << 3] * 8] * 8


def test_commands_that_need_one_class_a_pixel_refuse(coarse: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for command in (["data", "export", coarse], ["suspects", coarse, "--model", "street-tiny"]):
        assert "one class a pixel" in one_line_error(capsys, *command, "-o", coarse.parent / "out")
