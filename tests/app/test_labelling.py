"""`steadyseg data export`, `pick` and `suspects`: what they find and write, and what they refuse."""

import csv
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
from made.graphs import Graphs
from made.pictures import picture, save_split
from PIL import Image
from refusals import error_after_work, one_line_error

from steadyseg.app.cli import main
from steadyseg.app.contact_sheet import Cell, write_sheet
from steadyseg.app.labelling.pick import chosen_frames
from steadyseg.app.open_model import open_segmenter
from steadyseg.app.video.sinks import MaskSink
from steadyseg.core.classes import CAMVID, ClassList
from steadyseg.core.frame import Frame, Maps
from steadyseg.core.method import MethodOptions
from steadyseg.seg.data.camvid import open_split
from steadyseg.seg.data.class_file import read_classes
from steadyseg.seg.data.label_writer import FORMATS, Tool
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


def test_names_that_label_tools_spell_alike_stay_apart(tmp_path: Path) -> None:
    for name in ("2-a-b", "a b", "a+b", "a-b"):
        Image.new("RGB", (8, 8)).save(tmp_path / f"{name}.png")
    rows: dict[tuple[int, int], dict[str, Any]] = {(0, place): {"rank": place + 1} for place in range(4)}
    names = [name for name, *_ in chosen_frames([str(tmp_path)], rows)]
    assert names == ["2-a-b", "a-b", "3-a-b", "4-a-b"]


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
    pairs = list[tuple[str, np.ndarray, np.ndarray]]()
    for number, frame in enumerate(Street(seed=7, height=180, width=240).frames(4, 200)):
        assert frame.label is not None
        label = frame.label.copy()
        if number == 2:
            cars = connected_regions(np.where(label == CAMVID.names.index("Car"), 0, -1))
            car = max(cars, key=lambda region: region.pixels)
            label[car.rows, car.columns][car.mask] = CAMVID.names.index("Sky")
        pairs.append((str(number), frame.image, label))
    save_split(root, "train", pairs)
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
def test_graph_files_find_the_suspect_and_pick_frames_too(graphs: Graphs, tmp_path: Path) -> None:
    data, model, found = labelled_street(tmp_path / "street"), str(graphs("motion")), tmp_path / "suspects"
    assert main(["suspects", str(data), "--model", model, "-n", "1", "-o", str(found)]) == 0
    (first,) = csv.DictReader((found / "suspects.csv").read_text().splitlines())
    assert (first["picture"], first["label"]) == ("2", "Sky"), "half as large, the car is taken for a bicyclist"
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
        ["data", "export", labels.parent],
    ):
        said = one_line_error(capsys, *words, "-o", labels.parent, "--overwrite")
        assert "would be replaced while" in said and labels.read_text() == "{}"


def label_map(number: int) -> np.ndarray:
    """(96, 128) ids of a street, with noise whose regions touch at corners, have holes and lie in each other's holes;
    void is 255."""
    (frame,) = Street(seed=7 + number, height=96, width=128).frames(1, 100)
    assert frame.label is not None
    ids = np.where(frame.label < len(CAMVID), frame.label, 255).astype(np.uint8)
    ids[40:60, 40:70] = np.random.default_rng(number).integers(0, 3, (20, 30))
    ids[5:9, 5:9] = 255
    return ids


def names_of(label: Path, classes: ClassList) -> np.ndarray:
    return np.array([*classes.names, "void"])[np.minimum(np.array(Image.open(label)), len(classes))]


def own_data(root: Path) -> Path:
    """Two pictures of train and one of val, whose name is in train too, in classes of which some are absent."""
    for split, count in {"train": 2, "val": 1}.items():
        pairs = [(f"a {place}", picture(place, 96, 128), label_map(place + count)) for place in range(count)]
        save_split(root, split, pairs)
    (root / "classes.json").write_text(json.dumps([*CAMVID.names, "ufo"]))
    return root


@pytest.mark.parametrize("tool", FORMATS)
def test_every_pixel_that_was_exported_is_imported(tool: Tool, tmp_path: Path) -> None:
    data, exported, own = own_data(tmp_path / "data"), tmp_path / "exported", tmp_path / "own"
    assert main(["data", "export", str(data), "--labels", tool, "-o", str(exported)]) == 0
    assert main(["data", "import", str(exported), "-o", str(own)]) == 0
    classes, given = read_classes(own / "classes.json"), read_classes(data / "classes.json")
    for split, name, written in (("train", "a 0", "train_a 0"), ("train", "a 1", "a 1"), ("val", "a 0", "val_a 0")):
        kept = "train" if tool == "label-studio" else split  # whose file has no splits
        expected, found = data / f"{split}annot" / f"{name}.png", own / f"{kept}annot" / f"{written}.png"
        assert np.array_equal(names_of(found, classes), names_of(expected, given)), written
        assert (own / kept / f"{written}.png").read_bytes() == (data / split / f"{name}.png").read_bytes()
    if tool == "cvat":  # Datumaro reads no file without it
        found_names = ElementTree.parse(exported / "cvat.xml").iterfind("meta/task/labels/label/name")
        assert tuple(one.text for one in found_names) == given.names


def test_masks_are_exported_with_the_pictures_of_their_source(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source, masks, out, own = (tmp_path / name for name in ("drives", "masks", "out", "own"))
    sink, pictures = MaskSink(masks, CAMVID), sorted(drives(source).iterdir())[:2]
    for number, path in enumerate(pictures):
        ids = np.minimum(label_map(number), CAMVID.void_id)
        sink.write(Maps(ids, ids, ids, ids), path.stem)
    words = ["data", "export", str(masks), "-o", str(out)]
    assert "name the source that was segmented by --images" in one_line_error(capsys, *words)
    assert main([*words, "--images", str(source)]) == 0
    assert sorted(path.name for path in (out / "images").iterdir()) == [path.name for path in pictures]
    assert main(["data", "import", str(out), "-o", str(own)]) == 0
    for path in pictures:
        again = names_of(own / "trainannot" / path.name, read_classes(own / "classes.json"))
        assert np.array_equal(again, names_of(masks / path.name, CAMVID))
    words += ["--overwrite", "--images", str(source)]
    pictures[1].unlink()
    assert "has no picture of this name" in error_after_work(capsys, *words)
    Image.new("RGB", (8, 8)).save(pictures[1])
    assert "another size than its picture" in error_after_work(capsys, *words)
    assert len(list((out / "images").iterdir())) == 2, "the earlier folder is whole"
    first, *rows = (masks / "classes.csv").read_text().splitlines(keepends=True)
    (masks / "classes.csv").write_text("".join([first, *reversed(rows)]))
    assert "ids are not 0, 1, ... with void last" in one_line_error(capsys, *words)


def test_export_refuses_what_it_cannot_write(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data, output = own_data(tmp_path / "data"), tmp_path / "out"
    for words, said in {
        (data, "--images", "street"): "is for masks",
        (data, "--labels", "voc"): "Expected one of ('coco', 'cvat', 'yolo', 'label-studio')",
        (tmp_path,): "no data folder",
    }.items():
        assert said in one_line_error(capsys, "data", "export", *words, "-o", output)
    for path in data.glob("*annot/*"):
        Image.fromarray(np.full((96, 128), 255, np.uint8)).save(path)
    assert "pixel of a class" in error_after_work(capsys, "data", "export", data, "-o", output)
    Image.fromarray(np.full((96, 128), 77, np.uint8)).save(data / "trainannot" / "a 1.png")
    assert "unknown class ids [77]" in error_after_work(capsys, "data", "export", data, "-o", output)
    (data / "train" / "a 1.png").rename(data / "train" / "a\n1.png")
    (data / "trainannot" / "a 1.png").rename(data / "trainannot" / "a\n1.png")
    Image.fromarray(label_map(0)).save(data / "trainannot" / "a\n1.png")
    assert "rename the picture" in error_after_work(capsys, "data", "export", data, "-o", output)
    assert not output.exists()
