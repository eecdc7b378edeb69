"""`steadyseg data import`: what is written, what is told, and what is refused."""

import json
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from refusals import error_after_work, one_line_error

from steadyseg.app.cli import main
from steadyseg.core.classes import ClassList
from steadyseg.seg.data.camvid import open_split
from steadyseg.seg.data.class_file import read_classes

EXPORTS = Path(__file__).parent / "exports"


def square(left: int, side: int = 4) -> list[list[int]]:
    return [[left, 0, left + side, 0, left + side, side, left, side]]


def coco(
    root: Path, names: list[str], outlines: list[tuple[str, list[list[int]]]], size: tuple[int, int] = (8, 8)
) -> Path:
    """Pictures of 8x8, each with the same objects, labelled as pictures of `size`."""
    classes = sorted({name for name, _ in outlines})
    images, annotations = [], []
    for number, name in enumerate(names):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(np.full((8, 8, 3), number, np.uint8)).save(root / name)
        images.append({"id": number, "file_name": name, "height": size[0], "width": size[1]})
        annotations += [
            {"image_id": number, "category_id": classes.index(label), "segmentation": outline}
            for label, outline in outlines
        ]
    categories = [{"id": number, "name": name} for number, name in enumerate(classes)]
    file = root / "coco.json"
    file.write_text(json.dumps({"images": images, "categories": categories, "annotations": annotations}))
    return file


TWO = [("car", square(0)), ("road", square(2, 6))]


def test_a_folder_is_written_that_trainings_read(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    output = tmp_path / "own"
    pictures = ["--images", str(EXPORTS / "pictures")]
    assert (
        main(["data", "import", str(EXPORTS / "coco.json"), *pictures, "-o", str(output), "--background", "rest"]) == 0
    )
    classes = read_classes(output / "classes.json")
    assert classes.names == ("road", "car", "rest") and classes.void == 255
    split = open_split(output, "train", classes)
    assert [example.name for example in split.examples] == ["a_1", "a_2"]
    assert set(np.unique(split[0][1])) == {0, 1, 2}
    assert split.examples[0].image.read_bytes() == (EXPORTS / "pictures" / "a_1.png").read_bytes()
    with Image.open(output / "contact-sheet.jpg") as sheet:
        assert sheet.size[0] > 1000
    printed = capsys.readouterr()
    assert "a_1.png: objects of two classes overlap in 6.08% of the pixels (car over road)" in printed.err
    assert "too few to divide" in (output / "notes.txt").read_text() and "road" in printed.out


def test_whole_recordings_are_measured_on(tmp_path: Path) -> None:
    names = [f"{drive}/{drive}_{index}.png" for drive in "abcde" for index in range(5)]
    assert main(["data", "import", str(coco(tmp_path, names, TWO)), "-o", str(tmp_path / "own")]) == 0
    found = {split: sorted(path.stem[0] for path in (tmp_path / "own" / split).iterdir()) for split in ("train", "val")}
    assert len(found["val"]) == 5 and len(set(found["val"])) == 1 and not {*found["val"]} & {*found["train"]}


def test_pictures_of_one_name_are_told_apart_by_their_folders(tmp_path: Path) -> None:
    names = ["a/1.png", "b/1.png"]
    assert main(["data", "import", str(coco(tmp_path, names, TWO)), "-o", str(tmp_path / "own")]) == 0
    assert sorted(path.name for path in (tmp_path / "own" / "train").iterdir()) == ["a_1.png", "b_1.png"]


@pytest.mark.parametrize(("overlaps", "expected"), [("smaller", 0), ("later", 1), ("void", 255)])
def test_a_pixel_of_two_objects_goes_where_it_is_said(tmp_path: Path, overlaps: str, expected: int) -> None:
    source = coco(tmp_path, ["a.png"], TWO)
    assert main(["data", "import", str(source), "-o", str(tmp_path / "own"), "--overlaps", overlaps]) == 0
    label = np.array(Image.open(tmp_path / "own" / "trainannot" / "a.png"))
    assert label[0].tolist() == [0, 0, expected, expected, 1, 1, 1, 1]


def test_a_missing_picture_is_named_and_can_be_left_out(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source, output = coco(tmp_path, ["a.png", "b.png"], TWO), tmp_path / "own"
    (tmp_path / "b.png").unlink()
    line = error_after_work(capsys, "data", "import", source, "-o", output)
    assert "b.png" in line and str(source) in line and "--images" in line and not output.exists()
    assert main(["data", "import", str(source), "-o", str(output), "--skip-bad"]) == 0
    assert "b.png" in capsys.readouterr().err and [p.name for p in (output / "train").iterdir()] == ["a.png"]


def test_a_label_of_another_size_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = coco(tmp_path, ["a.png"], TWO, size=(16, 16))
    line = error_after_work(capsys, "data", "import", source, "-o", tmp_path / "own")
    assert f"{tmp_path / 'a.png'}: is 8x8" in line and "16x16" in line


def test_one_class_alone_needs_a_background(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = coco(tmp_path, ["a.png"], TWO[:1])
    assert "--background NAME" in error_after_work(capsys, "data", "import", source, "-o", tmp_path / "own")


def test_two_pictures_of_one_name_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = coco(tmp_path, ["a.png"], TWO)
    (tmp_path / "copy").mkdir()
    (tmp_path / "copy" / "a.png").write_bytes((tmp_path / "a.png").read_bytes())
    line = error_after_work(capsys, "data", "import", source, "-o", tmp_path / "own")
    assert str(tmp_path / "copy" / "a.png") in line and "--images" in line


@pytest.mark.parametrize(
    ("flags", "says"),
    [
        (["--val", "1"], "--val must be"),
        (["--images", "absent"], "no such folder"),
        (["-o", "."], "the name of a new one"),
    ],
)
def test_flags_that_cannot_be_are_refused(flags: list[str], says: str, capsys: pytest.CaptureFixture[str]) -> None:
    output = [] if "-o" in flags else ["-o", "own"]
    assert says in one_line_error(capsys, "data", "import", EXPORTS / "coco.json", *output, *flags)


def test_labels_of_other_classes_are_not_measured_on(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["data", "import", str(coco(tmp_path, ["a.png"], TWO)), "-o", str(tmp_path / "own")]) == 0
    line = error_after_work(capsys, "evaluate", "street-tiny", "--data", tmp_path / "own", "--split", "train")
    assert "classes.json" in line and "Sky" in line
    assert read_classes(tmp_path / "own" / "classes.json") != ClassList(("car", "road"), ((1, 1, 1), (2, 2, 2)))
