"""`steadyseg data import`: what is written, reported and refused."""

import json
import os
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest
from PIL import Image
from refusals import error_after_work, one_line_error

from steadyseg.app.cli import main
from steadyseg.core.classes import ClassList
from steadyseg.seg.data.class_file import read_classes
from steadyseg.seg.data.label_folder import open_split

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


def imported(source: Path, output: Path, *flags: str) -> None:
    assert main(["data", "import", str(source), "-o", str(output), *flags]) == 0


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
    imported(coco(tmp_path, names, TWO), tmp_path / "own")
    found = {split: sorted(path.stem[0] for path in (tmp_path / "own" / split).iterdir()) for split in ("train", "val")}
    assert len(found["val"]) == 5 and len(set(found["val"])) == 1 and not {*found["val"]} & {*found["train"]}


def test_pictures_of_one_name_are_told_apart_by_their_folders(tmp_path: Path) -> None:
    names = ["a/1.png", "b/1.png"]
    imported(coco(tmp_path, names, TWO), tmp_path / "own")
    assert sorted(path.name for path in (tmp_path / "own" / "train").iterdir()) == ["a_1.png", "b_1.png"]


def test_a_pixel_of_two_objects_goes_where_it_is_said(tmp_path: Path) -> None:
    source = coco(tmp_path, ["a.png"], TWO)
    imported(source, tmp_path / "own", "--overlaps", "later")
    label = np.array(Image.open(tmp_path / "own" / "trainannot" / "a.png"))
    assert label[0].tolist() == [0, 0, 1, 1, 1, 1, 1, 1]


def test_a_missing_picture_is_named_and_can_be_left_out(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """COCO labels of cam_left_b.png are not read for b.png. Only Label Studio's files have names with a prefix."""
    source, output = coco(tmp_path, ["a.png", "cam_left_b.png"], TWO), tmp_path / "own"
    (tmp_path / "cam_left_b.png").rename(tmp_path / "b.png")
    line = error_after_work(capsys, "data", "import", source, "-o", output)
    assert "cam_left_b.png" in line and str(source) in line and "--images" in line and not output.exists()
    imported(source, output, "--skip-bad")
    assert "cam_left_b.png" in capsys.readouterr().err and [p.name for p in (output / "train").iterdir()] == ["a.png"]


def test_a_size_that_is_only_claimed_is_not_drawn(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """5 kB of text took 4.9 GB: each object became a mask of the size that the file claims."""
    source = coco(tmp_path, ["a.png"], [*TWO, ("car", [[float("nan")] * 6])], size=(8000, 8000))
    line = error_after_work(capsys, "data", "import", source, "-o", tmp_path / "own")
    assert f"{tmp_path / 'a.png'}: is 8x8" in line and "8000x8000" in line and "finite" not in line


def test_a_photo_turned_by_exif_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = coco(tmp_path, ["a.png"], TWO, size=(4, 6))
    exif = Image.Exif()
    exif[0x0112] = 6
    Image.new("RGB", (6, 4)).save(tmp_path / "a.png", exif=exif)
    line = error_after_work(capsys, "data", "import", source, "-o", tmp_path / "own")
    assert "is 4x6, but 6x4 without the turn that its EXIF data ask for" in line and "save it turned" in line


def test_an_import_beside_an_earlier_one_finds_the_same_pictures(tmp_path: Path) -> None:
    """Nor are the hidden copies of Mac archives pictures, labels or palettes."""
    source = coco(tmp_path, ["a.png", "b.png"], TWO)
    for hidden in ("._a.png", ".cache/a.png", "__MACOSX/a.png", "._coco.json"):
        (tmp_path / hidden).parent.mkdir(exist_ok=True)
        (tmp_path / hidden).write_bytes(b"\0\5\x16\7")
    for output in ("own", "again", "own"):
        words = ["data", "import", str(tmp_path), "-o", str(tmp_path / output), "--overwrite"]
        assert main(words) == 0
        assert folders(tmp_path / output)["train"] == ["a.png", "b.png"], source


def test_masks_are_told_from_pictures(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """VOC's masks of objects are no pictures, in the folder itself or as its archive unpacks. Lossy masks are no
    labels. The line names a picture of a kind that is not read."""
    voc, palette = tmp_path / "d" / "VOCdevkit" / "VOC2012", np.array([[(0, 0, 0), (128, 0, 0)]], np.uint8)
    for folder in ("JPEGImages", "SegmentationClass", "SegmentationObject"):
        (voc / folder).mkdir(parents=True)
        Image.fromarray(palette).save(voc / folder / ("a.jpg" if folder == "JPEGImages" else "a.png"))
    for number, root in enumerate((voc, tmp_path / "d")):
        imported(root, tmp_path / f"own{number}")
    (voc / "JPEGImages" / "a.jpg").rename(voc / "a.jxl")
    line = error_after_work(capsys, "data", "import", voc, "-o", tmp_path / "own")
    assert "a.jxl: pictures of this kind are not read; convert it" in line
    (voc / "a.jxl").unlink()
    assert "no such picture" in error_after_work(capsys, "data", "import", voc, "-o", tmp_path / "own")

    beside = tmp_path / "beside"
    beside.mkdir()
    (beside / "palette.txt").write_text("zone 128 0 0\nroad 0 0 0\n")
    for name in ("a.png", "a_mask.png", "a_mask.jpg", "b_mask.jpg"):
        Image.fromarray(palette).save(beside / name)
    assert "b_mask.jpg" in one_line_error(capsys, "data", "import", beside, "-o", tmp_path / "own")
    (beside / "b_mask.jpg").unlink()
    imported(beside, tmp_path / "own")
    assert folders(tmp_path / "own")["train"] == ["a.png"]


def test_labels_are_ids_for_every_reader_and_of_any_void(tmp_path: Path) -> None:
    """OpenCV reads a palette's PNG as the brightness of its colours. A network of more classes, in another order
    and with another void id, reads the folder by their names."""
    source = coco(tmp_path, ["a.png"], [("car", square(0)), ("road", square(4))])
    imported(source, tmp_path / "own")
    label = cv2.imread(str(tmp_path / "own" / "trainannot" / "a.png"), cv2.IMREAD_GRAYSCALE)
    assert label is not None and label[[0, 0, 7], [0, 4, 0]].tolist() == [0, 1, 255]
    other = ClassList(("sky", "road", "car"), ((1, 1, 1), (2, 2, 2), (3, 3, 3)), void=3)
    assert open_split(tmp_path / "own", "train", other)[0][1][[0, 0, 7], [0, 4, 0]].tolist() == [2, 1, 3]


def test_a_name_that_is_not_utf8_may_have_a_remark(tmp_path: Path) -> None:
    """The file of remarks ended in a UnicodeEncodeError."""
    folder, name = tmp_path / "in", os.fsdecode(b"\xff")
    folder.mkdir()
    (folder / "palette.txt").write_text("zone 128 0 0\nroad 1 2 3\n")
    pixels = np.array([[(128, 0, 0), (1, 2, 3), (7, 7, 7)]], np.uint8)
    for ending in (".png", "_mask.png"):
        Image.fromarray(pixels).save(tmp_path / "a.png")
        (tmp_path / "a.png").rename(folder / f"{name}{ending}")
    imported(folder, tmp_path / "own")
    assert "have the colour of no class" in (tmp_path / "own" / "notes.txt").read_text()


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
    imported(coco(tmp_path, ["a.png"], TWO), tmp_path / "own")
    line = error_after_work(capsys, "evaluate", "street-tiny", "--data", tmp_path / "own", "--split", "train")
    assert "classes.json" in line and "Sky" in line
    assert read_classes(tmp_path / "own" / "classes.json") != ClassList(("car", "road"), ((1, 1, 1), (2, 2, 2)))


def cvat(root: Path, subsets: dict[str, str]) -> Path:
    """Pictures of 8x8 by name, with the subset that CVAT's export says."""
    images = []
    for number, (name, subset) in enumerate(subsets.items()):
        Image.fromarray(np.full((8, 8, 3), number, np.uint8)).save(root / name)
        images.append(
            f'<image name="{name}" subset="{subset}" width="8" height="8">'
            '<polygon label="car" points="0,0;4,0;4,4;0,4"/><polygon label="road" points="4,0;8,0;8,8;4,8"/></image>'
        )
    file = root / "cvat.xml"
    file.write_text(f"<annotations>{''.join(images)}</annotations>")
    return file


def folders(output: Path) -> dict[str, list[str]]:
    return {path.name: sorted(one.name for one in path.iterdir()) for path in output.iterdir() if path.is_dir()}


def test_subsets_become_the_splits_that_trainings_read(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = cvat(tmp_path, {"a.png": "Train", "b.png": " Validation ", "c.png": "TEST", "d.png": "default"})
    imported(source, tmp_path / "own")
    pictures = {"train": ["a.png", "d.png"], "val": ["b.png"], "test": ["c.png"]}
    assert folders(tmp_path / "own") == pictures | {f"{split}annot": names for split, names in pictures.items()}
    assert "1 pictures are in 'default', which is not train, val or test: they are for training" in (
        capsys.readouterr().err
    )


@pytest.mark.parametrize("subset", ["../stolen", "{elsewhere}/stolen", "..", "val&#10;x"])
def test_a_subset_is_never_a_folder(tmp_path: Path, subset: str) -> None:
    """The second picture is of val, so that the source keeps its splits."""
    (tmp_path / "in").mkdir()
    named = subset.format(elsewhere=tmp_path)
    source = cvat(tmp_path / "in", {"a.png": named, "b.png": "val", "c.png": "train"})
    imported(source, tmp_path / "in" / "own")
    pictures = {"train": ["a.png", "c.png"], "val": ["b.png"]}
    assert folders(tmp_path / "in" / "own") == pictures | {f"{split}annot": names for split, names in pictures.items()}
    assert [path.name for path in tmp_path.iterdir()] == ["in"]


def test_the_folder_above_cityscapes_labels_is_never_a_split(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Seen from two folders below, the labels' folder is `../..`, and its name `..`."""
    label = np.array([[7, 26], [7, 26]], np.uint8)  # road, car
    for folder, name in ((tmp_path, "x"), (tmp_path / "val" / "city", "y")):
        folder.mkdir(parents=True, exist_ok=True)
        Image.fromarray(label).save(folder / f"{name}_gtFine_labelIds.png")
        Image.fromarray(np.zeros((2, 2, 3), np.uint8)).save(folder / f"{name}_leftImg8bit.png")
    (tmp_path / "in" / "here").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "in" / "here")
    assert main(["data", "import", "../..", "-o", "own"]) == 0
    assert folders(Path("own")).keys() == {"train", "trainannot", "val", "valannot"}


def edited(file: Path, **changes: Any) -> Path:
    """The COCO file with other values in its first image."""
    record = json.loads(file.read_text())
    record["images"][0] |= changes
    file.write_text(json.dumps(record))
    return file


@pytest.mark.parametrize("named", ["", "{above}/secret.png"])
def test_a_name_that_is_no_picture_s_is_refused(tmp_path: Path, named: str, capsys: pytest.CaptureFixture[str]) -> None:
    """No path of a label file is opened: pictures are found among those below the folder."""
    (tmp_path / "in").mkdir()
    Image.fromarray(np.zeros((8, 8, 3), np.uint8)).save(tmp_path / "secret.png")
    source = coco(tmp_path / "in", ["a.png"], TWO)
    edited(source, file_name=named.format(above=tmp_path))
    line = error_after_work(capsys, "data", "import", source, "-o", tmp_path / "own")
    assert "no such picture lies below" in line and str(source) in line


@pytest.mark.parametrize("named", ["/home/me/data/a.png", "C:\\data\\a.png"])
def test_a_picture_is_found_by_the_end_of_a_path_elsewhere(tmp_path: Path, named: str) -> None:
    """Tools write the paths of the machine on which the pictures were labelled."""
    source = edited(coco(tmp_path, ["a.png"], TWO), file_name=named)
    imported(source, tmp_path / "own")
    assert folders(tmp_path / "own") == {"train": ["a.png"], "trainannot": ["a.png"]}


def test_a_remark_is_one_printable_line(tmp_path: Path) -> None:
    source = edited(coco(tmp_path, ["a.png"], [*TWO, ("car", [])]), file_name="\ud800\x1b[31m\n/a.png")
    imported(source, tmp_path / "own")
    first = (tmp_path / "own" / "notes.txt").read_text().splitlines()[0]
    assert first == "  [31m /a.png: 1 boxes without an outline are left out"


@pytest.mark.parametrize("names", [["a/1.png", "b/1.png", "a_1.png"], ["x/a/1.png", "y/a/1.png"]])
def test_two_pictures_that_would_have_one_name_are_refused(tmp_path, names, capsys):
    line = error_after_work(capsys, "data", "import", coco(tmp_path, names, TWO), "-o", tmp_path / "own")
    assert all(str(tmp_path / name) in line for name in (names[0], names[-1])) and "written as a_1" in line


@pytest.mark.parametrize(
    ("table", "entry", "change"),
    [("images", 0, {"id": "0"}), ("annotations", 0, {"image_id": "0"}), ("annotations", 1, {"category_id": "1"})],
)
def test_a_number_s_text_is_its_id(tmp_path: Path, table: str, entry: int, change: dict[str, str]) -> None:
    source = coco(tmp_path, ["a.png"], TWO)
    record = json.loads(source.read_text())
    record[table][entry] |= change
    source.write_text(json.dumps(record))
    imported(source, tmp_path / "own", "--background", "other")
    label = np.array(Image.open(tmp_path / "own" / "trainannot" / "a.png"))
    assert label[0].tolist() == [0, 0, 0, 0, 1, 1, 1, 1] and label[7, 0] == 2
