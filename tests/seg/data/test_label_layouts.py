"""Labels as tools and people lay them out: names in other spellings, other folders, other units, missing parts."""

import base64
import io
import json
from pathlib import Path
from typing import Any
from unicodedata import normalize
from urllib.parse import quote

import numpy as np
import pytest
from PIL import Image
from refusals import refusal

from steadyseg.core.classes import ClassList
from steadyseg.seg.data.formats.masks import Outline, check_corners
from steadyseg.seg.data.formats.open_source import open_labels
from steadyseg.seg.data.formats.source import UNLABELLED
from steadyseg.seg.data.import_labels import Imported, import_labels
from steadyseg.seg.data.label_folder import open_split

HALVES = [[[0, 0, 8, 0, 8, 8, 0, 8]], [[8, 0, 16, 0, 16, 8, 8, 8]]]
"""A road and a car side by side, in a picture of 16x8."""
HALF = np.repeat([0, 1], 8)[None].repeat(8, 0)
CLASSES = ClassList(("road", "car"), ((1, 2, 3), (9, 9, 9)), 255)
ACCENTS = "Straße-école"


def save(path: Path, pixels: Any = 90, **options: Any) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(np.broadcast_to(np.array(pixels, np.uint8), (8, 16, 3))).save(path, **options)
    return path


def grey(path: Path, pixels: Any = HALF) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(np.asarray(pixels, np.uint8)).save(path)
    return path


def coco(path: Path, names: list[str], outlines: list[Any] = HALVES, **size: Any) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    size = size or {"height": 8, "width": 16}
    images = [{"id": number, "file_name": name, **size} for number, name in enumerate(names)]
    kinds = [{"id": number, "name": name} for number, name in enumerate(("none", "road", "car", "__ignore__"))]
    marks = [
        {"image_id": number, "category_id": kind, "segmentation": outline}
        for number in range(len(names))
        for kind, outline in enumerate(outlines, 1)
    ]
    path.write_text(json.dumps({"images": images, "categories": kinds, "annotations": marks}))
    return path


def labelme(path: Path, named: str, outlines: list[Any] = HALVES, labels: Any = CLASSES.names, **more: Any) -> Path:
    shapes = [
        {"label": label, "points": np.reshape(outline[0], (-1, 2)).tolist()}
        for label, outline in zip(labels, outlines, strict=True)
    ]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"shapes": shapes, "imagePath": named, "imageHeight": 8, "imageWidth": 16} | more))
    return path


def cvat(path: Path, named: str, outlines: list[Any] = HALVES, size: str = 'width="16" height="8"') -> Path:
    shapes = "".join(
        f'<polygon label="{label}" points="{";".join(f"{x},{y}" for x, y in np.reshape(outline[0], (-1, 2)))}"/>'
        for label, outline in zip(CLASSES.names, outlines, strict=True)
    )
    path.write_text(f'<annotations><image name="{named}" {size}>{shapes}</image></annotations>')
    return path


def label_studio(path: Path, named: str, outlines: list[Any], **size: Any) -> Path:
    found = [
        {"value": {"points": np.reshape(outline[0], (-1, 2)).tolist(), "polygonlabels": [label]}, **size}
        for label, outline in zip(CLASSES.names, outlines, strict=True)
    ]
    path.write_text(json.dumps([{"id": 1, "data": {"image": named}, "annotations": [{"result": found}]}]))
    return path


def yolo(root: Path, label: str, text: str = "0 0 0 .5 0 .5 1 0 1\n1 .5 0 1 0 1 1 .5 1\n", **record: Any) -> Path:
    (root / label).parent.mkdir(parents=True, exist_ok=True)
    (root / label).write_text(text)
    (root / "data.yaml").write_text(json.dumps({"train": "images/train", "names": CLASSES.names} | record))
    return root


def brought(source: Path, images: Path, **flags: Any) -> tuple[Imported, dict[str, np.ndarray]]:
    """Imports, and returns the labels by picture."""
    output = images.parent / f"{images.name}-own"
    done = import_labels(open_labels(source, flags.pop("palette", None)), images, output, shares={}, **flags)
    return done, {f"{path.parent.name}/{path.stem}": np.array(Image.open(path)) for path in output.glob("*annot/*.png")}


SPELLINGS = [
    (normalize("NFD", ACCENTS), normalize("NFC", ACCENTS)),
    (normalize("NFC", ACCENTS), normalize("NFD", ACCENTS)),
    ("Capture décran 1", quote("Capture décran 1")),
    (quote("Capture décran 1"), "Capture décran 1"),
    ("IMG_1", "img_1"),
]


@pytest.mark.parametrize(("here", "written"), SPELLINGS)
def test_a_name_is_found_in_another_spelling_in_every_format(here: str, written: str, tmp_path: Path) -> None:
    sources = {kind: tmp_path / kind for kind in ("coco", "labelme", "cvat", "label-studio", "yolo", "voc")}
    for kind, root in sources.items():
        save(root / ("images/train" if kind == "yolo" else "JPEGImages") / f"{here}.png")
    coco(sources["coco"] / "x.json", [f"{written}.png"])
    labelme(sources["labelme"] / "x.json", f"{written}.png")
    cvat(sources["cvat"] / "x.xml", f"{written}.png")
    sources["cvat"] /= "x.xml"
    percent = (np.array(HALVES) * np.tile([100 / 16, 100 / 8], 4)).tolist()
    label_studio(sources["label-studio"] / "x.json", f"/data/upload/1/{written}.png", percent)
    yolo(sources["yolo"], f"labels/train/{written}.txt")
    grey(sources["voc"] / "SegmentationClass" / f"{written}.png", HALF + 1)
    (sources["voc"] / "labelmap.txt").write_text("void:0,0,0::\nroad:1,2,3::\ncar:4,5,6::\n")
    (lists := sources["voc"] / "ImageSets/Segmentation").mkdir(parents=True)
    (lists / "train.txt").write_text(f"C:\\voc\\JPEGImages\\{here}.jpg\n")
    for source in sources.values():
        done, labels = brought(source, source if source.is_dir() else source.parent)
        road = done.classes.names.index("road")
        assert np.array_equal(labels[f"trainannot/{here}"] == road, HALF == 0), source
    assert open_labels(sources["voc"]).pictures[0].split == "train"


@pytest.mark.parametrize(("here", "written"), SPELLINGS)
def test_a_data_folder_s_label_is_found_in_another_spelling(here: str, written: str, tmp_path: Path) -> None:
    save(tmp_path / f"train/{here}.png")
    label = grey(tmp_path / f"trainannot/{written}.png")
    (tmp_path / "train.txt").write_text(f"{written}.png\n")
    split = open_split(tmp_path, "train", CLASSES)
    assert split.examples[0].label == label and len(split.subset([written])) == 1


def test_a_spelling_that_fits_two_files_is_refused_and_the_exact_one_wins(tmp_path: Path) -> None:
    for name in ("a.png", "A.png"):
        save(tmp_path / "im" / name, 7 if name == "a.png" else 8)
    done, _ = brought(coco(tmp_path / "x.json", ["a.png"]), tmp_path / "im")
    assert any("1 pictures beside labelled ones have no label" in remark for remark in done.remarks)
    assert np.array(Image.open(tmp_path / "im-own/train/a.png")).max() == 7
    (tmp_path / "im/a.png").rename(tmp_path / "im/á.png"), save(tmp_path / "im/Á.png")
    line = refusal(brought, coco(tmp_path / "x.json", [quote("á").lower() + ".PNG"]), tmp_path / "im", overwrite=True)
    assert "have this name" in line
    save(tmp_path / "own/train/b.png"), save(tmp_path / "own/train/B.png"), grey(tmp_path / "own/trainannot/b.png")
    assert "fits both" in refusal(open_split, tmp_path / "own", "train", CLASSES)
    grey(tmp_path / "own/trainannot/B.png")
    assert [one.label.name for one in open_split(tmp_path / "own", "train", CLASSES).examples] == ["B.png", "b.png"]


@pytest.mark.parametrize(
    ("record", "line"),
    [
        ({"train": "train.txt"}, "data/images/train/a.png"),
        ({"train": ["train.txt"], "path": "./"}, "./images/train/a.png"),
        ({"train": "C:\\work\\y\\train.txt"}, "C:\\work\\y\\images\\train\\a.png"),
        ({"train": "images\\train", "path": "C:\\work\\y"}, ""),
        ({"train": "/content/y/images/train"}, ""),
        ({"train": "../Images/TRAIN"}, ""),
    ],
)
def test_yolo_s_lists_and_paths_of_other_machines(record: Any, line: str, tmp_path: Path) -> None:
    save(tmp_path / "y/images/train/a.png")
    yolo(tmp_path / "y", "Labels/train/a.txt" if not line else "labels/train/a.txt", **record)
    if line:
        (tmp_path / "y/train.txt").write_bytes(f"\ufeff{line}\r\n".encode())
    assert np.array_equal(brought(tmp_path / "y", tmp_path / "y")[1]["trainannot/a"], HALF)


def test_percent_in_place_of_pixels_is_said() -> None:
    """Such corners lie inside any large picture."""
    assert "percent" in check_corners([Outline([np.reshape(part, (-1, 2)) * (6, 12)]) for (part,) in HALVES], 480, 640)
    assert not check_corners([Outline([[(0, 0), (30, 0), (30, 100)]])], 480, 640)


def test_a_list_s_pictures_may_be_elsewhere(tmp_path: Path) -> None:
    """CVAT exports labels without the pictures, too."""
    yolo(tmp_path / "y", "labels/train/a.txt", train="train.txt")
    (tmp_path / "y/train.txt").write_text("data/images/train/a.png\n")
    save(tmp_path / "mine/a.png")
    assert np.array_equal(brought(tmp_path / "y", tmp_path / "mine")[1]["trainannot/a"], HALF)


def test_folders_of_splits_are_one_source(tmp_path: Path) -> None:
    """Roboflow's COCO and masks, whose splits may have other classes, and LabelMe's files beside their pictures."""
    for split, names in (("train", ["a", "b"]), ("valid", ["c"]), ("test", ["d"])):
        for kind in ("coco", "labelme", "masks"):
            for name in names:
                save(tmp_path / kind / split / f"{name}.jpg")
        coco(tmp_path / "coco" / split / "_annotations.coco.json", [f"{name}.jpg" for name in names])
        for name in names:
            labelme(tmp_path / "labelme" / split / f"{name}.json", f"{name}.jpg", labels=("road", "car"))
            grey(tmp_path / "masks" / split / f"{name}_mask.png", HALF if split == "train" else 1 - HALF)
        order = "0, road\n1, car\n" if split == "train" else "0, car\n1, road\n"
        (tmp_path / "masks" / split / "_classes.csv").write_text(f"Pixel Value, Class\n{order}")
    for kind in ("coco", "labelme", "masks"):
        done, labels = brought(tmp_path / kind, tmp_path / kind)
        road = done.classes.names.index("road")
        assert {*labels} == {"trainannot/a", "trainannot/b", "valannot/c", "testannot/d"}
        assert all(np.array_equal(label == road, HALF == 0) for label in labels.values())


@pytest.mark.parametrize(
    ("pictures", "masks", "split"),
    [
        ("images", "masks", "train"),
        ("JPEGImages", "Labels", "train"),
        ("images/val", "masks/val", "val"),
        ("val", "val_labels", "val"),
        ("val/img", "val/mask_png", "val"),
        ("default", "defaultannot", "train"),
    ],
)
def test_a_folder_named_as_masks_has_the_masks(pictures: str, masks: str, split: str, tmp_path: Path) -> None:
    colours = np.array([(255, 0, 0), (128, 64, 128)])[HALF]
    for places in ({pictures: masks}, {pictures.replace("val", "train"): masks.replace("val", "train")}):
        for here, of_labels in places.items():
            name = "b" if here != pictures else "a"
            save(tmp_path / "k" / here / f"{name}.png"), save(tmp_path / "k" / of_labels / f"{name}.png", colours)
    (tmp_path / "k/palette.txt").write_text("zone 255 0 0\nroad 128 64 128\n")
    labels = brought(tmp_path / "k", tmp_path / "k")[1]
    assert np.array_equal(labels[f"{split}annot/a"], HALF) and len(labels) == (2 if split == "val" else 1)
    Image.fromarray(colours.astype(np.uint8)).save(tmp_path / "k" / masks / "c.jpg")
    assert "compression" in refusal(open_labels, tmp_path / "k")


@pytest.mark.parametrize("masks", ["masks/{}", "{}_labels"])
def test_masks_of_one_name_are_told_apart_by_their_splits(masks: str, tmp_path: Path) -> None:
    pictures = "images/{}" if masks == "masks/{}" else "{}"
    for split, label in (("train", HALF), ("val", 1 - HALF)):
        save(tmp_path / pictures.format(split) / "1.png", 7 if split == "val" else 8)
        save(tmp_path / masks.format(split) / "1.png", np.array([(255, 0, 0), (128, 64, 128)])[label])
    (tmp_path / "palette.txt").write_text("zone 255 0 0\nroad 128 64 128\n")
    done, labels = brought(tmp_path, tmp_path)
    assert np.array_equal(labels["valannot/val_1"], 1 - HALF) and np.array_equal(labels["trainannot/train_1"], HALF)
    assert done.pictures == {"train": 1, "val": 1}


def test_masks_of_ids_by_a_table_of_names(tmp_path: Path) -> None:
    """A remark counts numbers of no class. A 0 without a name is unlabelled, and a void name is void."""
    save(tmp_path / "m/a.jpg")
    pixels = HALF + 3
    pixels[0], pixels[1], pixels[2] = 0, 9, 7
    grey(tmp_path / "m/a_mask.png", pixels)
    (tmp_path / "ids.txt").write_text("3 road\n4 car 2\n9 Void\n")
    done, labels = brought(tmp_path / "m", tmp_path / "m", palette=tmp_path / "ids.txt")
    assert done.classes.names == ("road", "car 2") and np.array_equal(labels["trainannot/a"][3:], HALF[3:])
    assert (labels["trainannot/a"][:3] == 255).all()
    assert any("12.50% of the pixels have the number of no class (one is 7)" in remark for remark in done.remarks)
    (tmp_path / "ids.txt").write_text("3 road\n3 car\n")
    assert "two equal names or numbers" in refusal(open_labels, tmp_path / "m", tmp_path / "ids.txt")


@pytest.mark.parametrize("background", [None, "other"])
def test_what_is_to_be_ignored_is_void_in_every_format(background: str | None, tmp_path: Path) -> None:
    outlines = [HALVES[0], [[8, 0, 12, 0, 12, 8, 8, 8]], [[12, 0, 16, 0, 16, 4, 12, 4]]]
    labels = ("road", "car", "__ignore__")
    save(tmp_path / "l/a.png"), labelme(tmp_path / "l/a.json", "a.png", outlines, labels)
    save(tmp_path / "c/a.png"), coco(tmp_path / "c/x.json", ["a.png"], outlines)
    for root in (tmp_path / "l", tmp_path / "c"):
        done, found = brought(root, root, background=background)
        assert {*done.classes.names} == {"road", "car", *filter(None, [background])}
        label, rest = found["trainannot/a"], 255 if background is None else done.classes.names.index("other")
        assert (label[:4, 12:] == 255).all() and (label[4:, 12:] == rest).all()


def test_panoptic_annotations_are_named(tmp_path: Path) -> None:
    record = json.loads(coco(tmp_path / "x.json", ["a.png"]).read_text())
    record["annotations"] = [{"image_id": 0, "file_name": "a.png", "segments_info": [{"id": 7, "category_id": 1}]}]
    (tmp_path / "x.json").write_text(json.dumps(record))
    assert "panoptic annotations" in refusal(open_labels, tmp_path / "x.json")


def test_pictures_without_labels_are_no_background(tmp_path: Path) -> None:
    root = yolo(tmp_path / "y", "elsewhere/a.txt")
    for name in ("a", "b"):
        save(root / f"images/train/{name}.png")
    line = refusal(brought, root, root, background="other")
    assert f"2 of 2 pictures have no label file, such as {root / 'labels/train/a.txt'}" in line
    yolo(root, "labels/train/a.txt"), yolo(root, "labels/train/c.txt")
    done, labels = brought(root, root, background="other")
    assert len(labels) == 2 and (labels["trainannot/b"] == 2).all()
    for words in (
        "1 of 2 pictures have no label file",
        "1 label files have no picture",
        "1 of 2 pictures have no labell",
    ):
        assert any(words in remark for remark in done.remarks), words
    boxes = coco(tmp_path / "y/images/x.json", ["a.png"], [[], []])
    assert "no picture of train has a labelled pixel" in refusal(brought, boxes, root / "images", background="other")


def test_no_picture_of_a_data_folder_is_passed_over(tmp_path: Path) -> None:
    for name in ("a.png", "b.bmp", "c.tif", "d.webp", "e.jfif", "f.ppm"):
        save(tmp_path / "train" / name, format="JPEG" if name == "e.jfif" else None)
        grey(tmp_path / f"trainannot/{name[0]}.png")
    (tmp_path / "train/a.txt").write_text("a note")
    assert len(open_split(tmp_path, "train", CLASSES)) == 6
    grey(tmp_path / "trainannot/g.png")
    (tmp_path / "train/g.nef").write_bytes(b"raw")
    assert "g.nef: pictures of this kind are not read" in refusal(open_split, tmp_path, "train", CLASSES)
    (tmp_path / "train/g.nef").unlink(), save(tmp_path / "train/g.gif")
    assert "g.gif: pictures of this kind are not read" in refusal(open_split, tmp_path, "train", CLASSES)
    (tmp_path / "train/g.gif").unlink(), save(tmp_path / "train/more/g.png")
    assert "pictures in folders of" in refusal(open_split, tmp_path, "train", CLASSES)


SHARES = (np.array(HALVES) / np.tile([16, 8], 4)).tolist()
PERCENT = (np.array(SHARES) * 100).tolist()
FAR = (np.array(HALVES) * 40).tolist()


@pytest.mark.parametrize("kind", ["coco", "labelme", "cvat", "label-studio"])
@pytest.mark.parametrize("unit", ["own", "shares", "far"])
def test_corners_in_another_unit_are_refused(kind: str, unit: str, tmp_path: Path) -> None:
    own = PERCENT if kind == "label-studio" else HALVES
    outlines = {"own": own, "shares": SHARES, "far": FAR}[unit]
    file = tmp_path / ("x.xml" if kind == "cvat" else "x.json")
    save(tmp_path / "im/a.png")
    if kind == "coco":
        coco(file, ["a.png"], outlines)
    else:
        {"labelme": labelme, "cvat": cvat, "label-studio": label_studio}[kind](file, "a.png", outlines)
    if unit == "own":
        done, labels = brought(file, tmp_path / "im")
        assert ((labels["trainannot/a"] == done.classes.names.index("road")) == (HALF == 0)).all()
        return
    line = refusal(brought, file, tmp_path / "im", background="other")
    assert ("percent of the sides" if kind == "label-studio" else "pixels") in line
    assert ("shares of the sides do" if unit == "shares" else "far outside the 16x8 picture") in line


def test_yolo_s_corners_in_pixels_are_refused_and_a_few_outside_are_said(tmp_path: Path) -> None:
    save(tmp_path / "y/images/train/a.png")
    yolo(tmp_path / "y", "labels/train/a.txt", "0 0 0 8 0 8 8 0 8\n")
    assert "not in shares of the sides" in refusal(brought, tmp_path / "y", tmp_path / "y")
    save(tmp_path / "im/a.png")
    over = [[[0, 0, 8, 0, 8, 12, 0, 8]], HALVES[1]]
    done, _ = brought(coco(tmp_path / "x.json", ["a.png"], over), tmp_path / "im")
    assert any("1 of 8 corners lie outside the picture by more than a pixel" in remark for remark in done.remarks)


@pytest.mark.parametrize("size", [{}, {"height": None, "width": None}, {"height": 0, "width": 0}])
def test_a_label_file_without_sizes_has_the_picture_s(size: dict[str, Any], tmp_path: Path) -> None:
    save(tmp_path / "im/a.png")
    sides = {f"image{side.title()}": value for side, value in size.items()}
    of_xml = "" if not size else 'width="" height=""'
    files = (
        coco(tmp_path / "c.json", ["a.png"], **(size or {"license": 1})),
        labelme(tmp_path / "l.json", "a.png", **(sides or {"imageHeight": None})),
        cvat(tmp_path / "v.xml", "a.png", size=of_xml),
        label_studio(
            tmp_path / "s.json", "a.png", PERCENT, **{f"original_{side}": value for side, value in size.items()}
        ),
    )
    for file in files:
        done, labels = brought(file, tmp_path / "im", overwrite=True)
        assert ((labels["trainannot/a"] == done.classes.names.index("road")) == (HALF == 0)).all(), file


def test_a_video_of_cvat_without_a_size_has_its_frames(tmp_path: Path) -> None:
    save(tmp_path / "im/frame_000002.png")
    tracks = "".join(
        f'<track label="{label}"><polygon frame="2" outside="0" points="{points}"/><polygon frame="5" outside="1" '
        f'points="0,0;1,1;2,0"/></track>'
        for label, points in (("road", "0,0;8,0;8,8;0,8"), ("car", "8,0;16,0;16,8;8,8"))
    )
    (tmp_path / "x.xml").write_text(f"<annotations><meta><task><size>6</size></task></meta>{tracks}</annotations>")
    done, labels = brought(tmp_path / "x.xml", tmp_path / "im")
    assert [*labels] == ["trainannot/frame_000002"] and done.classes.names == ("car", "road")
    assert np.array_equal(labels["trainannot/frame_000002"], 1 - HALF)


SQUARE = "0.25 0.25 0.75 0.25 0.75 0.75 0.25 0.75"
"""The middle quarter of a picture."""


def ultralytics(root: Path, **more: Any) -> Path:
    """A data set as ultralytics and Roboflow lay it out: `../train/images` means train/images; b.jpg is turned."""
    turned = Image.Exif()
    turned[0x0112] = 6
    for split in ("train", "valid"):
        save(root / split / f"images/{split}-a.jpg")
        Image.new("RGB", (8, 16)).save(root / split / f"images/{split}-b.jpg", exif=turned)
        yolo(root, f"{split}/labels/{split}-a.txt", f"1 {SQUARE}\n0 0.5 0.5 0.2 0.2\n\n")
        yolo(
            root,
            f"{split}/labels/{split}-b.txt",
            f"0 {SQUARE}\n",
            train="../train/images",
            val=["valid/images"],
            **more,
        )
    return root


@pytest.mark.parametrize("names", [["road", "car"], {0: "road", 1: "car"}])
def test_yolos_polygons_are_shares_of_the_upright_picture(names: Any, tmp_path: Path) -> None:
    root = ultralytics(tmp_path / "in", names=names)
    done, labels = brought(root, root)
    assert done.classes.names == ("road", "car") and done.pictures == {"train": 2, "val": 2}
    expected = np.full((8, 16), UNLABELLED, np.uint8)
    expected[2:6, 4:12] = 1
    for split, name in (("train", "train"), ("val", "valid")):
        assert np.array_equal(labels[f"{split}annot/{name}-a"], expected)
        assert np.array_equal(labels[f"{split}annot/{name}-b"], np.where(expected == 1, 0, UNLABELLED))
    assert "train-a.jpg: 1 boxes without an outline are left out" in done.remarks


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
    root = ultralytics(tmp_path / "in")
    if line:
        (root / "train/labels/train-a.txt").write_text(line)
    record = json.loads((root / "data.yaml").read_text())
    (root / "data.yaml").write_text(json.dumps(record | more))
    assert words in refusal(lambda: brought(root, root))


def test_labelmes_polygons_rectangles_and_masks_are_painted(tmp_path: Path) -> None:
    stored = io.BytesIO()
    Image.fromarray(np.array([[True, False], [True, True]])).save(stored, "PNG")
    mask = {"shape_type": "mask", "points": [[1, 5], [2, 6]], "mask": base64.b64encode(stored.getvalue()).decode()}
    shapes = [
        {"label": "car", "points": [[4, 2], [12, 2], [12, 6], [4, 6]]},
        {"label": "sign", "shape_type": "rectangle", "points": [[15, 3], [13, 1]]},
        {"label": "post", **mask},
        {"label": "line", "shape_type": "line", "points": [[0, 0], [3, 3]]},
    ]
    labelme(tmp_path / "a.json", "a.jpg", shapes=shapes)
    source = open_labels(tmp_path)
    assert source.names == ("car", "post", "sign")
    assert source.remarks == ["a.jpg: 1 shapes that are no polygon, rectangle or mask are left out"]
    expected = np.full((8, 16), UNLABELLED, np.uint8)
    expected[2:6, 4:12], expected[1:3, 13:15] = 0, 2
    expected[[5, 6, 6], [1, 1, 2]] = 1
    assert np.array_equal(source.pictures[0].read().ids, expected)


def test_what_labelme_cannot_mean_is_one_line(tmp_path: Path) -> None:
    save(tmp_path / "a.jpg")
    labelme(tmp_path / "a.json", "a.jpg", shapes=[{"points": [[0, 0]]}])
    assert "expected LabelMe's shapes" in refusal(open_labels, tmp_path)
    labelme(tmp_path / "a.json", "a.jpg", imageHeight=9)
    assert "is 16x8, and its label in" in refusal(brought, tmp_path, tmp_path)
