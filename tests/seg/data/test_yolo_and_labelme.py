"""Reading of YOLO's polygons and LabelMe's shapes as their tools write them."""

import base64
import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from refusals import refusal

from steadyseg.seg.data.formats.open_source import open_labels
from steadyseg.seg.data.formats.source import UNLABELLED
from steadyseg.seg.data.import_labels import import_labels

SQUARE = "0.25 0.25 0.75 0.25 0.75 0.75 0.25 0.75"
"""The middle quarter of a picture."""


def save(path: Path, turned: bool = False) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    picture, exif = Image.new("RGB", (8, 16) if turned else (16, 8)), Image.Exif()
    exif[0x0112] = 6 if turned else 1
    picture.save(path, exif=exif)


def yolo(root: Path, **more: Any) -> Path:
    """A data set as ultralytics and Roboflow lay it out: `../train/images` means train/images."""
    record = {"train": "../train/images", "val": ["valid/images"], "names": ["road", "car"]} | more
    (root / "data.yaml").write_text(json.dumps(record))
    for split in ("train", "valid"):
        for name in ("a.jpg", "b.jpg"):
            save(root / split / "images" / f"{split}-{name}", turned=name == "b.jpg")
        (root / split / "labels").mkdir()
        (root / split / "labels" / f"{split}-a.txt").write_text(f"1 {SQUARE}\n0 0.5 0.5 0.2 0.2\n\n")
        (root / split / "labels" / f"{split}-b.txt").write_text(f"0 {SQUARE}\n")
    return root


@pytest.mark.parametrize("names", [["road", "car"], {0: "road", 1: "car"}])
def test_yolos_polygons_are_shares_of_the_upright_picture(names: Any, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    root, output = yolo(tmp_path / "in", names=names), tmp_path / "out"
    imported = import_labels(open_labels(root), root, output, shares={})
    assert imported.classes.names == ("road", "car") and imported.pictures == {"train": 2, "val": 2}
    expected = np.full((8, 16), UNLABELLED, np.uint8)
    expected[2:6, 4:12] = 1
    for split, name in (("train", "train"), ("val", "valid")):
        assert np.array_equal(np.array(Image.open(output / f"{split}annot" / f"{name}-a.png")), expected)
        turned = np.array(Image.open(output / f"{split}annot" / f"{name}-b.png"))
        assert np.array_equal(turned, np.where(expected == 1, 0, UNLABELLED))
    assert "train-a.jpg: 1 boxes without an outline are left out" in imported.remarks


@pytest.mark.parametrize(
    ("more", "line", "words"),
    [
        ({"train": "nowhere"}, "", "names 'nowhere', which is no folder of pictures here"),
        ({"names": None}, "", "expected YOLO's data.yaml with names"),
        ({}, f"7 {SQUARE}", "train-a.txt has the class 7, which data.yaml does not name"),
        ({}, "0 1 2 3 x 5 6", "could not convert string to float"),
        ({}, "0 1 2 3 4 5 6 7", "cannot reshape array"),
    ],
)
def test_what_yolos_labels_cannot_mean_is_one_line(more: Any, line: str, words: str, tmp_path: Path) -> None:
    root = yolo(tmp_path, **more)
    if line:
        (root / "train" / "labels" / "train-a.txt").write_text(line)
    assert words in refusal(lambda: import_labels(open_labels(root), root, tmp_path / "out", shares={}))


def labelme(path: Path, *shapes: dict[str, Any], **more: Any) -> None:
    save(path.with_suffix(".jpg"))
    record = {"version": "5.5.0", "imagePath": path.with_suffix(".jpg").name, "imageData": None, "shapes": shapes}
    path.write_text(json.dumps(record | {"imageHeight": 8, "imageWidth": 16} | more))


def test_labelmes_polygons_rectangles_and_masks_are_painted(tmp_path: Path) -> None:
    stored = io.BytesIO()
    Image.fromarray(np.array([[True, False], [True, True]])).save(stored, "PNG")
    mask = {"shape_type": "mask", "points": [[1, 5], [2, 6]], "mask": base64.b64encode(stored.getvalue()).decode()}
    labelme(
        tmp_path / "a.json",
        {"label": "car", "points": [[4, 2], [12, 2], [12, 6], [4, 6]]},
        {"label": "sign", "shape_type": "rectangle", "points": [[15, 3], [13, 1]]},
        {"label": "post", **mask},
        {"label": "line", "shape_type": "line", "points": [[0, 0], [3, 3]]},
    )
    labelme(
        tmp_path / "b.json", {"label": "car", "shape_type": "polygon", "points": [[0, 0], [16, 0], [16, 8], [0, 8]]}
    )
    source = open_labels(tmp_path)
    assert source.names == ("car", "post", "sign") and source.remarks == [
        "a.jpg: 1 shapes that are no polygon, rectangle or mask are left out"
    ]
    expected = np.full((8, 16), UNLABELLED, np.uint8)
    expected[2:6, 4:12], expected[1:3, 13:15] = 0, 2
    expected[[5, 6, 6], [1, 1, 2]] = 1
    assert np.array_equal(source.pictures[0].read().ids, expected) and (source.pictures[1].read().ids == 0).all()


def test_what_labelme_cannot_mean_is_one_line(tmp_path: Path) -> None:
    labelme(tmp_path / "a.json", {"points": [[0, 0]]})
    assert "expected LabelMe's shapes" in refusal(open_labels, tmp_path)
    labelme(tmp_path / "a.json", {"label": "x", "points": [[0, 0], [16, 0], [16, 8]]}, imageHeight=9)
    line = refusal(lambda: import_labels(open_labels(tmp_path), tmp_path, tmp_path / "out", background="b", shares={}))
    assert "is 16x8, and its label in" in line
