"""Readers of label files against files that the tools' own libraries wrote (exports/make.py)."""

import json
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest
from PIL import Image
from refusals import refusal

from steadyseg.seg.data.formats.cityscapes import CITYSCAPES
from steadyseg.seg.data.formats.colour_pngs import VOC_NAMES, read_palette, read_voc
from steadyseg.seg.data.formats.cvat import read_cvat
from steadyseg.seg.data.formats.masks import MAX_LETTERS, Shape, decode_coco_rle, fill_polygon, fill_runs, paint
from steadyseg.seg.data.formats.open_source import open_labels
from steadyseg.seg.data.formats.source import UNLABELLED, PictureFinder, one_line

EXPORTS = Path(__file__).parent / "exports"
TRUTH_NAMES = {0: "road", 1: "car", UNLABELLED: ""}
SOURCES = ("coco.json", "cvat", "label_studio.json", "label_studio_pngs", "voc_segmentation")


def names_of(ids: np.ndarray, names: dict[int, str]) -> np.ndarray:
    return np.vectorize(lambda number: names.get(number, ""))(ids)


@pytest.mark.parametrize("source", SOURCES)
def test_a_label_is_what_the_tool_s_library_decodes(source: str) -> None:
    """Polygons may differ on their slanted outlines, where pycocotools rounds to a fifth of a pixel."""
    found = open_labels(EXPORTS / source)
    assert len(found.pictures) == 2
    for name, picture in zip(("a_1", "a_2"), found.pictures, strict=True):
        truth = np.array(Image.open(EXPORTS / "truth" / f"{name}.png"))
        ours = names_of(picture.read().ids, dict(enumerate(found.names)))
        if source == "voc_segmentation":  # its background is a class
            ours = np.where(ours == "background", "", ours)
        wrong = ours != names_of(truth, TRUTH_NAMES)
        if name == "a_2" and source in ("coco.json", "cvat"):
            inside = np.pad((truth != UNLABELLED).astype(np.uint8), 1)
            outline = cv2.morphologyEx(inside, cv2.MORPH_GRADIENT, np.ones((3, 3)))[1:-1, 1:-1]
            assert wrong.sum() <= 8 and not (wrong & (outline == 0)).any()
        else:
            assert not wrong.any()


def test_each_source_finds_its_pictures_and_names_its_classes() -> None:
    for source in ("coco.json", "cvat", "label_studio.json", "voc_segmentation"):
        found = open_labels(EXPORTS / source)
        finder = PictureFinder(EXPORTS / "pictures", set())
        assert [finder.find(picture).name for picture in found.pictures] == ["a_1.png", "a_2.png"]
        assert {"road", "car"} <= set(found.names) and "never" not in found.names
    assert open_labels(EXPORTS / "voc_segmentation").colors == ((0, 0, 0), (128, 64, 128), (64, 0, 128))


def test_brush_pngs_find_their_pictures_by_an_export_beside_them(tmp_path: Path) -> None:
    for path in (EXPORTS / "label_studio_pngs").iterdir():
        (tmp_path / path.name).write_bytes(path.read_bytes())
    assert [picture.named for picture in open_labels(tmp_path).pictures] == ["1.*", "2.*"]
    smaller = [{"id": task, "image": f"/data/upload/1/0a1b2c3d-a_{task}.png", "tag": []} for task in (1, 2)]
    (tmp_path / "min.json").write_text(json.dumps(smaller))
    finder, (first, second) = PictureFinder(EXPORTS / "pictures", set()), open_labels(tmp_path).pictures
    assert [finder.find(picture).name for picture in (first, second)] == ["a_1.png", "a_2.png"]
    assert "no such picture" in refusal(finder.find, first._replace(named="cam_left_a_1.png"))


def test_polygons_that_share_an_edge_share_no_pixel_and_leave_none() -> None:
    left, right = [[0, 0], [7.3, 0], [2.6, 9], [0, 9]], [[7.3, 0], [12, 0], [12, 9], [2.6, 9]]
    assert np.array_equal(fill_polygon(left, 9, 12), ~fill_polygon(right, 9, 12))
    assert fill_polygon([[-1e300, -5], [1e300, -5], [50, 50], [-5, 50]], 9, 12).all()
    assert fill_polygon([[2, 1], [4, 1], [4, 3], [2, 3]], 9, 12).sum() == 4
    slit = np.array([[0, 0], [12, 0], [12, 9], [0, 9], [0, 0], [4, 6], [11, 3], [4, 6]]) / (12, 9)
    assert fill_polygon(slit.round(6) * (12, 9), 9, 12).all(), "a line there and back passes a pixel's centre"


@pytest.mark.parametrize("lengths", [[2, 3], [2**62, 2**62, 2**62, 2**62 + 6], [10**30], [-1, 7]])
def test_run_lengths_that_do_not_fill_the_mask_are_refused_whatever_their_sum_in_64_bits(lengths: list[int]) -> None:
    with pytest.raises(ValueError, match="run lengths"):
        fill_runs(lengths, 6)


def coco_text(length: int, letters: int) -> str:
    """A compressed run length in more letters than it needs."""
    digits = [length >> 5 * place & 0x1F | 0x20 * (place < letters - 1) for place in range(letters)]
    return bytes(digit + 48 for digit in digits).decode()


def test_a_compressed_run_length_has_a_limit_of_letters() -> None:
    """A number of n letters has 5n bits, and each letter would copy them: 400 kB took 8 s."""
    assert not decode_coco_rle(coco_text(6, MAX_LETTERS), 2, 3).any()
    with pytest.raises(ValueError, match=f"more than {MAX_LETTERS} letters"):
        decode_coco_rle(coco_text(6, MAX_LETTERS + 1), 2, 3)
    assert 5 * MAX_LETTERS > 32 + 1, "pycocotools writes 32 bits with a sign"


def test_cvat_s_higher_layers_hide_lower_ones_and_its_masks_have_a_place(tmp_path: Path) -> None:
    file = tmp_path / "a.xml"
    file.write_text(
        "<annotations><meta><job><labels><label><name>road</name><color>#0a0b0c</color></label><label><name>car</name>"
        '<color>#ffffff</color></label></labels></job></meta><image name="a.png" width="4" height="3">'
        '<mask label="car" rle="1,2,1" left="1" top="1" width="2" height="2" z_order="2"/>'
        '<polygon label="road" points="0,0;4,0;4,3;0,3" z_order="1"/><box label="car" xtl="0" ytl="0" xbr="1" ybr="1"/>'
        "</image></annotations>"
    )
    found = read_cvat(file, "void")
    assert found.pictures[0].read().ids.tolist() == [[0, 0, 0, 0], [0, 0, 1, 0], [0, 1, 0, 0]]
    assert found.colors == ((10, 11, 12), (255, 255, 255))
    assert found.remarks == ["a.png: 1 objects that have no outline are left out (box)"]


def test_voc_s_palette_numbers_its_classes(tmp_path: Path) -> None:
    """VOC's development kit draws class 15, a person, in (192, 128, 128). Void takes a number of the palette, too."""
    folder = tmp_path / "SegmentationClass"
    folder.mkdir()
    label = Image.fromarray(np.array([[0, 15, 255]], np.uint8))
    label.putpalette(bytes(768))
    label.save(folder / "x.png")
    Image.fromarray(np.array([[(0, 0, 0), (192, 128, 128), (224, 224, 192)]], np.uint8)).save(folder / "y.png")
    for picture in read_voc(tmp_path, None).pictures:
        assert picture.read().ids.tolist() == [[0, VOC_NAMES.index("person"), UNLABELLED]]
    (tmp_path / "labelmap.txt").write_text("void:0,0,0::\n" + "".join(f"c{n}:{n},1,1::\n" for n in range(1, 16)))
    assert open_labels(tmp_path).pictures[0].read().ids.tolist() == [[UNLABELLED, 14, UNLABELLED]]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("labelmap.txt", "# label:color_rgb:parts:actions\nroad:1,2,3::\nVoid:0,0,0::\nstop sign:4,5,6::\n"),
        ("label_colors.txt", "1 2 3\t\troad\n0 0 0 Void\n4 5 6 stop sign\n"),
        ("class_dict.csv", "name,r,g,b\nroad,1,2,3\nstop sign,4,5,6\n"),
        ("palette.json", '{"road": [1, 2, 3], "stop sign": [4, 5, 6]}'),
        ("classes.json", '{"names": ["road", "stop sign"], "colors": [[1, 2, 3], [4, 5, 6]]}'),
    ],
)
def test_palettes_of_all_tools_are_read(tmp_path: Path, name: str, text: str) -> None:
    (tmp_path / name).write_text(text)
    assert read_palette(tmp_path / name)[0] == {"road": (1, 2, 3), "stop sign": (4, 5, 6)}


@pytest.mark.parametrize(
    "line", ["lane 2,255,0,0", "lane 2: 255 0 0", "lane 2\t255 0 0", "lane 2:255,0,0::", "255,0,0,lane 2"]
)
def test_a_number_in_a_name_is_not_a_colour(tmp_path: Path, line: str) -> None:
    (tmp_path / "palette.txt").write_text(f"{line}\nroad 1 2 3\n")
    assert read_palette(tmp_path / "palette.txt")[0] == {"lane 2": (255, 0, 0), "road": (1, 2, 3)}


@pytest.mark.parametrize(
    "line",
    [
        "lane 2 255 0 0",
        "zone 255 0 0 255",
        "0,zone,255,0,0",
        "zone,255,0,0,9",
        "zone 2 3",
        "road 4 5 6",
        "1 255 0 0 zone",
    ],
)
def test_a_palette_s_line_of_two_meanings_is_refused(tmp_path: Path, line: str) -> None:
    """A fourth number may be of the name, an id or an alpha; a line of another class must not vanish."""
    (tmp_path / "palette.txt").write_text(f"name r g b\nroad 1 2 3\n{line}\n")
    assert str(tmp_path / "palette.txt") in refusal(read_palette, tmp_path / "palette.txt")


def test_a_palette_of_more_classes_than_ids_is_refused(tmp_path: Path) -> None:
    """257 ended in an OverflowError, as an id is a byte."""
    (tmp_path / "palette.txt").write_text(
        "".join(f"c{number},{number % 256},{number // 256},9\n" for number in range(257))
    )
    assert "257 classes; at most 255" in refusal(read_palette, tmp_path / "palette.txt")


def test_a_colour_of_no_class_is_told(tmp_path: Path) -> None:
    (tmp_path / "palette.txt").write_text("road 9 9 9\ncar 255 255 255\n")
    Image.fromarray(np.array([[(9, 9, 9), (1, 2, 3)]], np.uint8)).save(tmp_path / "x_mask.png")
    Image.fromarray(np.array([[(1, 2, 3)]], np.uint8)).save(tmp_path / "y.png")
    first, second = open_labels(tmp_path).pictures
    assert first.named == "x.*" and first.read().ids.tolist() == [[0, UNLABELLED]]
    assert "50.00% of the pixels have the colour of no class (one is (1, 2, 3))" in first.read().remark
    assert "y.png" in refusal(second.read) and "right palette" in refusal(second.read)


def test_cityscapes_train_ids_are_its_own(data_dir: Path) -> None:
    root = data_dir / "cityscapes-sample"
    if not root.is_dir():
        pytest.skip(f"no cityscapes-sample in {data_dir}")
    (picture,) = open_labels(root).pictures
    label = next(root.rglob("*_labelTrainIds.png"))
    assert (picture.read().ids == np.array(Image.open(label))).mean() > 0.997  # each file was reduced by itself
    assert picture.split == "val" and len(CITYSCAPES) == 19
    assert PictureFinder(root, {picture.labelled_in}).find(picture).name == "frankfurt_000000_000294_leftImg8bit.png"


def damaged(source: str, change: dict[str, Any]) -> Any:
    record = json.loads((EXPORTS / source).read_text())
    for path, value in change.items():
        *way, last = [int(key) if key.isdigit() else key for key in path.split("/")]
        inner = record
        for key in way:
            inner = inner[key]
        inner[last] = value
    return record


@pytest.mark.parametrize(
    ("source", "change"),
    [
        ("coco.json", {"categories/0/id": 77}),
        ("coco.json", {"images/0/height": "tall"}),
        ("coco.json", {"images/0/height": 100_000, "images/0/width": 100_000}),
        ("coco.json", {"annotations/0/segmentation/counts": "zz~\x00"}),
        ("coco.json", {"annotations/0/segmentation/counts": [2**62, 2**62, 2**62, 2**62 + 2400]}),
        ("coco.json", {"annotations/0/segmentation/size": [1, 2]}),
        ("coco.json", {"images/0/id": [1]}),
        ("coco.json", {"annotations/1/segmentation": [[0, float("nan"), 5, 5, 9, 9]]}),
        ("label_studio.json", {"0/data": {}}),
        ("label_studio.json", {"0/annotations/0/result/0/value/rle": [1, 2, 3]}),
        ("label_studio.json", {"0/annotations/0/result/0/value/rle": "zip"}),
    ],
)
def test_a_damaged_file_is_named(tmp_path: Path, source: str, change: dict[str, Any]) -> None:
    file = tmp_path / "labels.json"
    file.write_text(json.dumps(damaged(source, change)))

    def read() -> None:
        for picture in open_labels(file).pictures:
            with one_line(picture.labelled_in, "a label"):
                picture.read()

    assert str(file) in refusal(read)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"images/1/id": "1"}, "two images have the id 1"),
        ({"categories/1/id": 1}, "two categories have the id 1"),
        ({"annotations/0/image_id": 3}, "an annotation has the image_id 3"),
        ({"annotations/0/image_id": "01"}, "an annotation has the image_id '01'"),
        ({"annotations/0/category_id": 9, "annotations/0/segmentation": []}, "an annotation has the category_id 9"),
    ],
)
def test_an_id_of_two_entries_or_of_none_is_named(tmp_path: Path, change: dict[str, Any], says: str) -> None:
    file = tmp_path / "labels.json"
    file.write_text(json.dumps(damaged("coco.json", change)))
    line = refusal(open_labels, file)
    assert line.startswith(f"{file}: {says}")


def test_classes_keep_the_order_of_their_ids(tmp_path: Path) -> None:
    file = tmp_path / "labels.json"
    numbers = {"categories/0/id": "10", "annotations/1/category_id": 10, "annotations/3/category_id": 10}
    file.write_text(json.dumps(damaged("coco.json", numbers)))
    assert open_labels(file).names == ("car", "road")


def test_two_files_of_coco_may_use_the_same_ids(tmp_path: Path) -> None:
    for split in ("train", "val"):
        (tmp_path / f"instances_{split}.json").write_text((EXPORTS / "coco.json").read_text())
    assert [picture.split for picture in open_labels(tmp_path).pictures] == ["train", "train", "val", "val"]


@pytest.mark.parametrize(
    ("name", "content", "says"),
    [
        ("a.json", '{"names": []}', "unknown kind"),
        ("a.json", "{", "expected JSON"),
        ("a.xml", "<annotations>", "CVAT for images"),
        ("a.zip", "PK", "unpacked"),
    ],
)
def test_what_is_no_label_file_is_refused(tmp_path: Path, name: str, content: str, says: str) -> None:
    (tmp_path / name).write_text(content)
    line = refusal(open_labels, tmp_path / name)
    assert str(tmp_path / name) in line and says in line


def test_a_flat_polygon_is_one_and_an_outline_without_an_area_is_told(tmp_path: Path) -> None:
    file, square = tmp_path / "labels.json", [0, 0, 4, 0, 4, 4, 0, 4]
    for parts, pixels, remark in (
        (square, 16, ""),
        ([square], 16, ""),
        ([[0, 0, 4, 4]], 0, "left out, as no pixel's centre lies inside: 1 of 1 outlines"),
        ([[]], 0, "left out"),
    ):
        one = {"id": 1, "image_id": 1, "category_id": 1, "segmentation": parts}
        file.write_text(json.dumps(damaged("coco.json", {"annotations": [one]})))
        ids, said = open_labels(file).pictures[0].read()
        assert (ids == 0).sum() == pixels and said.startswith(remark)


def test_a_broken_object_is_its_picture_s_fault_alone(tmp_path: Path) -> None:
    """`--skip-bad` goes on without the picture; an unreadable size or object refused the whole file."""
    good = '<polygon label="car" points="0,0;4,0;4,4;0,4"/>'
    images = [
        f'<image name="a.png" width="8" height="8">{good}</image>',
        f'<image name="b.png" width="8" height="8">{good}<polygon label="car"/></image>',
        f'<image name="c.png" width="8" height="8"><polygon points="0,0;4,0;4,4"/>{good}</image>',
        f'<image name="d.png" width="wide" height="8">{good}</image>',
        '<image name="e.png" width="8" height="8"><mask label="car" rle="1,x" left="0" top="0" width="2" height="2"/>'
        "</image>",
    ]
    file = tmp_path / "a.xml"
    file.write_text(f"<annotations>{''.join(images)}</annotations>")
    good_one, *bad = open_labels(file).pictures
    assert (good_one.read().ids == 0).sum() == 16 and len(bad) == 4
    for picture in bad:
        with pytest.raises(ValueError, match=r"\w"):
            picture.read()


def test_tracks_of_cvat_are_objects_of_the_frames_in_which_they_are_seen(tmp_path: Path) -> None:
    shape = '<polygon frame="{}" outside="{}" points="0,0;4,0;4,2;0,2"/>'.format
    size = "<meta><task><original_size><width>8</width><height>4</height></original_size></task></meta>"
    tracks = f'{size}<track label="road">{shape(2, 0)}{shape(3, 1)}</track><track label="car">{shape(12, 0)}</track>'
    (file := tmp_path / "a.xml").write_text(f"<annotations>{tracks}</annotations>")
    source = open_labels(file)
    assert source.names == ("car", "road")
    assert [one.named for one in source.pictures] == ["frame_000002.*", "frame_000012.*"]
    expected = np.full((4, 8), UNLABELLED)
    expected[:2, :4] = 1
    assert np.array_equal(source.pictures[0].read().ids, expected)
    file.write_text(f'<annotations>{tracks}<track label="car" task_id="7"/></annotations>')
    assert "tracks of several videos" in refusal(open_labels, file)


@pytest.mark.parametrize("overlaps", ["smaller", "later", "void"])
def test_objects_drawn_one_by_one_are_those_drawn_together(overlaps: Any) -> None:
    """The reference holds all masks at once and orders them by area."""
    rng = np.random.default_rng(7)
    masks = []
    for _ in range(12):
        mask = np.zeros((20, 30), bool)
        top, left, height, width = rng.integers(0, 18), rng.integers(0, 28), *rng.integers(1, 14, 2)
        mask[top : top + height, left : left + width] = True
        masks.append((int(rng.integers(3)), mask))
    ids, contested = np.full((20, 30), UNLABELLED), np.zeros((20, 30), bool)
    for class_id, mask in sorted(masks, key=lambda item: -item[1].sum()) if overlaps == "smaller" else masks:
        contested |= mask & (ids != UNLABELLED) & (ids != class_id)
        ids[mask] = class_id
    if overlaps == "void":
        ids[contested] = UNLABELLED
    shapes = [Shape("abc"[class_id], lambda *_, mask=mask: mask) for class_id, mask in masks]
    label = paint(shapes, (20, 30), "abc", overlaps)
    assert np.array_equal(label.ids, ids) and f"{contested.mean():.2%}" in label.remark


def test_a_folder_without_labels_is_refused(tmp_path: Path) -> None:
    assert "holds no labels" in refusal(open_labels, tmp_path)
    assert "no such file" in refusal(open_labels, tmp_path / "absent")
    Image.fromarray(np.zeros((2, 2), np.uint8)).save(tmp_path / "x.png")
    assert "--palette" in refusal(open_labels, tmp_path)
