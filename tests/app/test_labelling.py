"""`steadyseg pick` and `steadyseg suspects`: what they find and write, and what they refuse."""

import csv
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from refusals import one_line_error

from steadyseg.app.cli import main
from steadyseg.app.contact_sheet import Cell, write_sheet
from steadyseg.app.open_model import open_segmenter
from steadyseg.core.classes import CAMVID, ClassList
from steadyseg.core.frame import Frame
from steadyseg.core.method import MethodOptions
from steadyseg.seg.data.camvid import open_split
from steadyseg.seg.data.class_file import read_classes
from steadyseg.seg.data.regions import connected_regions
from steadyseg.seg.street.drive import Street


def drives(root: Path) -> Path:
    """Two recordings of four frames, of which the frames of each are nearly alike."""
    root.mkdir()
    for seed in (3, 8):
        for frame in Street(seed=seed, height=96, width=128).frames(4, 100):
            Image.fromarray(frame.image).save(root / f"drive{seed}_{frame.index:03d}.png")
    return root


@pytest.mark.slow
def test_what_was_picked_is_read_back_by_the_import(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sheets: list[Sequence[Cell]] = []

    def sheet_of(path: Path, cells: Sequence[Cell], classes: ClassList, shades: Sequence[Any]) -> None:
        sheets.append(cells)
        assert [color for _, color in shades][::2] == [(0, 0, 4), (252, 255, 164)], "the colours of uncertainty"
        write_sheet(path, cells, classes, shades)

    monkeypatch.setattr("steadyseg.app.labelling.pick.SHOWN", 2)  # more frames than a JPEG has room for
    monkeypatch.setattr("steadyseg.app.labelling.pick.write_sheet", sheet_of)
    source, picked, own = drives(tmp_path / "drives"), tmp_path / "pick", tmp_path / "own"
    assert main(["pick", str(source), "-n", "3", "-o", str(picked), "--model", "street-tiny"]) == 0
    rows = list(csv.DictReader((picked / "frames.csv").read_text().splitlines()))
    assert [row["rank"] for row in rows] == ["1", "2", "3"] and all(row["reason"] for row in rows)
    assert {Path(row["file"]).name[:6] for row in rows} == {"drive3", "drive8"}, "spread over the recordings"
    with Image.open(picked / "contact-sheet.jpg") as sheet:
        assert sheet.size[0] > 1900
    assert [cell.caption[:2] for cell in sheets[0]] == ["1.", "2."]
    assert main(["data", "import", str(picked / "coco.json"), "-o", str(own)]) == 0
    classes = read_classes(own / "classes.json")
    split, segmenter = open_split(own, "train", classes), open_segmenter("street-tiny", MethodOptions(mode="dnn"))
    assert sorted(example.name for example in split.examples) == sorted(Path(row["file"]).stem for row in rows)
    for number, example in enumerate(split.examples):
        image, label = split[number]
        maps = segmenter.step(Frame(image, 0, 0.0, discontinuity=True))
        names = np.array(segmenter.classes.names)
        differing = names[maps.label] != np.array(classes.names)[label]
        assert differing.mean() < 0.005, "but for the number format of the executor"
        uncertainty = np.asarray(Image.open(picked / "uncertainty" / f"{example.name}.png"))
        assert uncertainty.shape == label.shape and uncertainty.std() > 1


@pytest.mark.slow
def test_frames_like_the_labelled_ones_are_not_picked(tmp_path: Path) -> None:
    source, labelled = drives(tmp_path / "drives"), tmp_path / "labelled" / "train"
    labelled.mkdir(parents=True)
    for path in source.glob("drive3_*.png"):
        (labelled / path.name).write_bytes(path.read_bytes())
    words = ["-n", "1", "--model", "street-tiny", "--data", str(labelled.parent)]
    assert main(["pick", str(source), *words, "-o", str(tmp_path / "pick")]) == 0
    (row,) = csv.DictReader((tmp_path / "pick" / "frames.csv").read_text().splitlines())
    assert "drive8" in row["file"] and float(row["distance"]) > 0.3


def test_pick_refuses_what_it_cannot_do(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    output = tmp_path / "pick"
    for words, said in {
        ("street:1:9", "-n", "0"): "-n must be 1 or more, got 0",
        ("absent.mp4",): "no such file or folder: 'absent.mp4'",
        ("street:1:9", "--model", "cifar10-resnet18-plain"): "an image classifier",
        ("street:1:9", "--data", str(tmp_path / "none")): "cannot be read",
    }.items():
        assert said in one_line_error(capsys, "pick", *words, "-o", output)
    assert not output.exists()
    assert "there is no folder" in one_line_error(capsys, "pick", "street:1:9", "-o", output / "deeper")
    assert "give the name of a new one" in one_line_error(capsys, "pick", "street:1:9", "-o", ".", "--overwrite")


def labelled_street(root: Path) -> Path:
    """Four labelled pictures, of which the third has its largest car labelled as sky."""
    for folder in ("train", "trainannot"):
        (root / folder).mkdir(parents=True)
    for number, frame in enumerate(Street(seed=7, height=180, width=240).frames(4, 200)):
        assert frame.label is not None
        label = frame.label.copy()
        if number == 2:
            cars = connected_regions(np.where(label == CAMVID.names.index("Car"), 0, -1))
            car = max(cars, key=lambda region: region.pixels)
            label[car.rows, car.columns][car.mask] = CAMVID.names.index("Sky")
        Image.fromarray(frame.image).save(root / "train" / f"{number}.png")
        Image.fromarray(label).save(root / "trainannot" / f"{number}.png")
    (root / "classes.json").write_text(
        json.dumps({"names": CAMVID.names, "colors": CAMVID.colors, "void": CAMVID.void})
    )
    return root


@pytest.mark.slow
def test_a_car_that_is_labelled_sky_is_the_first_suspect(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data, output = labelled_street(tmp_path / "street"), tmp_path / "suspects"
    assert main(["suspects", str(data), "--model", "street-tiny", "-n", "5", "-o", str(output)]) == 0
    first, *others = csv.DictReader((output / "suspects.csv").read_text().splitlines())
    assert (first["picture"], first["label"], first["suggested"]) == ("2", "Sky", "Car") and len(others) <= 4
    assert first["reason"].startswith("labelled Sky") and float(first["self_confidence"]) < 0.1
    with Image.open(output / "contact-sheet.jpg") as sheet:
        assert sheet.size[0] > 1900
    printed = capsys.readouterr()
    assert "suspect regions in 4 pictures" in printed.out and "street-tiny was trained on street;" in printed.err


@pytest.mark.slow
def test_graph_files_find_the_suspect_and_pick_frames_too(tmp_path: Path) -> None:
    data, model, found = labelled_street(tmp_path / "street"), str(tmp_path / "m.onnx"), tmp_path / "suspects"
    assert main(["export", "street-tiny", "--stateful", "-o", model]) == 0
    assert main(["suspects", str(data), "--model", model, "-n", "1", "-o", str(found)]) == 0
    (first,) = csv.DictReader((found / "suspects.csv").read_text().splitlines())
    assert (first["picture"], first["label"], first["suggested"]) == ("2", "Sky", "Car")
    picked = tmp_path / "pick"
    assert main(["pick", str(drives(tmp_path / "drives")), "-n", "2", "-o", str(picked), "--model", model]) == 0
    rows = list(csv.DictReader((picked / "frames.csv").read_text().splitlines()))
    assert {Path(row["file"]).name[:6] for row in rows} == {"drive3", "drive8"} and "expected error" in rows[0]


def test_suspects_refuses_what_it_cannot_do(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for words, said in {
        ("street", "--model", "street-tiny"): "the street's labels are exact",
        (str(tmp_path), "--model", "street-tiny"): "no such folder",
        (str(tmp_path), "--model", "street-tiny", "--split", "held-out"): "lists no images",
    }.items():
        assert said in one_line_error(capsys, "suspects", *words, "-o", tmp_path / "suspects")
    assert not (tmp_path / "suspects").exists()


def test_no_input_is_replaced_by_the_output(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    labels = tmp_path / "own" / "coco.json"
    labels.parent.mkdir()
    labels.write_text("{}")
    for words in (
        ["suspects", labels.parent, "--model", "street-tiny"],
        ["pick", labels.parent],
        ["data", "import", labels],
    ):
        said = one_line_error(capsys, *words, "-o", labels.parent, "--overwrite")
        assert "would be replaced while" in said and labels.read_text() == "{}"
