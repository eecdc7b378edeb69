"""`steadyseg data export` and `suspects`: what they find and write, and what they refuse."""

import csv
import json
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from made.graphs import Graphs
from made.pictures import picture, save_split
from PIL import Image
from refusals import error_after_work, one_line_error

from steadyseg.app.cli import main
from steadyseg.app.video.sinks import MaskSink
from steadyseg.core.classes import CAMVID, ClassList
from steadyseg.core.frame import Maps
from steadyseg.seg.data.class_file import read_classes
from steadyseg.seg.data.label_writer import FORMATS, Tool
from steadyseg.seg.data.regions import connected_regions
from steadyseg.street.drive import Street


def drives(root: Path) -> Path:
    """Two recordings of four frames, of which the frames of each are nearly alike."""
    root.mkdir()
    for seed in (3, 8):
        for frame in Street(seed=seed, height=96, width=128).frames(4, 100):
            Image.fromarray(frame.image).save(root / f"drive{seed}_{frame.index:03d}.png")
    return root


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
@pytest.mark.usefixtures("checked_here")
def test_graph_files_find_the_suspect_too(graphs: Graphs, tmp_path: Path) -> None:
    data, model, found = labelled_street(tmp_path / "street"), str(graphs("motion")), tmp_path / "suspects"
    assert main(["suspects", str(data), "--model", model, "-n", "1", "-o", str(found)]) == 0
    (first,) = csv.DictReader((found / "suspects.csv").read_text().splitlines())
    assert (first["picture"], first["label"]) == ("2", "Sky"), "half as large, the car is taken for a bicyclist"


def label_map(number: int) -> np.ndarray:
    """(96, 128) ids of a street, 255 for void, with noise whose regions touch at corners and have holes."""
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


@pytest.mark.slow
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


@pytest.mark.slow
def test_masks_are_exported_with_the_pictures_of_their_source(tmp_path, capsys):
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
