"""`steadyseg pick`: the folder that it writes, read back by the import, and what it refuses."""

import csv
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from refusals import one_line_error

from app.cli import main
from app.open_model import open_segmenter
from core.frame import Frame
from core.method import MethodOptions
from seg.data.camvid import open_split
from seg.data.class_file import read_classes
from seg.street.drive import Street


def drives(root: Path) -> Path:
    """Two recordings of four frames, of which the frames of each are nearly alike."""
    root.mkdir()
    for seed in (3, 8):
        for frame in Street(seed=seed, height=96, width=128).frames(4, 100):
            Image.fromarray(frame.image).save(root / f"drive{seed}_{frame.index:03d}.png")
    return root


@pytest.mark.slow
def test_what_was_picked_is_read_back_by_the_import(tmp_path: Path) -> None:
    source, picked, own = drives(tmp_path / "drives"), tmp_path / "pick", tmp_path / "own"
    assert main(["pick", str(source), "-n", "3", "-o", str(picked), "--model", "street-tiny"]) == 0
    rows = list(csv.DictReader((picked / "frames.csv").read_text().splitlines()))
    assert [row["rank"] for row in rows] == ["1", "2", "3"] and all(row["reason"] for row in rows)
    assert {Path(row["file"]).name[:6] for row in rows} == {"drive3", "drive8"}, "spread over the recordings"
    with Image.open(picked / "contact-sheet.jpg") as sheet:
        assert sheet.size[0] > 1900
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
        ("street:1:9", "--model", "some.onnx"): "give the checkpoint it was made from",
        ("street:1:9", "--model", "cifar10-resnet18-plain"): "an image classifier",
        ("street:1:9", "--data", str(tmp_path / "none")): "cannot be read",
    }.items():
        assert said in one_line_error(capsys, "pick", *words, "-o", output)
    assert not output.exists()
    assert "there is no folder" in one_line_error(capsys, "pick", "street:1:9", "-o", output / "deeper")
