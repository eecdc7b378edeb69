"""Class folders and archives of them: pixels in their places, every fault in one line, and the real sets."""

import io
import struct
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
import pytest
from made.pictures import picture
from PIL import Image
from refusals import refusal

from steadyseg.classification.data import image_folder
from steadyseg.classification.data.labelled import centre_view, read_picture, square_view, whole_view
from steadyseg.classification.data.open import open_classification

Content = dict[str, bytes]


def encoded(seed: int, height: int = 16, width: int = 16) -> bytes:
    file = io.BytesIO()
    Image.fromarray(picture(seed, height, width)).save(file, "PNG")
    return file.getvalue()


def pictures(folder: str = "") -> Content:
    """Three pictures of each class: of seeds 0..2, 10..12 and 20..22."""
    names = ("cat", "Ant", "bee")
    return {f"{folder}{name}/{n}.png": encoded(10 * place + n) for place, name in enumerate(names) for n in range(3)}


GOOD = pictures()


def pack(path: Path, content: Mapping[str, bytes] = GOOD, method: int = zipfile.ZIP_DEFLATED) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(path, "w", method) as archive:
        for name, data in content.items():
            archive.writestr(name, data)
    return path


def lay(folder: Path, content: Mapping[str, bytes] = GOOD) -> Path:
    for name, data in content.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(data)
    return folder


@pytest.mark.parametrize("zipped", [False, True])
def test_class_ids_go_by_the_sorted_folder_names_and_pixels_are_those_of_the_files(tmp_path, zipped):
    root = tmp_path / "mine"
    if zipped:
        pack(root / "train.zip")
    else:
        lay(root / "train")
    data = open_classification(root, "train")
    assert data.classes.names == ("Ant", "bee", "cat") and data.classes.void is None
    assert data.labels.tolist() == [0, 0, 0, 1, 1, 1, 2, 2, 2] and data.labels.dtype == np.int64
    assert (len(data), data.name, data.default_size) == (9, "mine", 16 if zipped else 224)
    for index, seed in enumerate((10, 11, 12, 20, 21, 22, 0, 1, 2)):
        image, class_id = data[index]
        np.testing.assert_array_equal(image, picture(seed, 16, 16))  # RGB, as Pillow wrote it
        assert class_id == data.labels[index] and type(class_id) is int
    part = data.subset(np.array([8, 0]))
    assert part.labels.tolist() == [2, 0] and part.classes == data.classes
    np.testing.assert_array_equal(part[0][0], picture(2, 16, 16))
    assert len({data.list_hash, part.list_hash, data.subset([0, 8]).list_hash}) == 3
    if zipped:  # the sums of the pictures count too
        pack(tmp_path / "other" / "train.zip", GOOD | {"cat/0.png": encoded(99)})
        assert open_classification(tmp_path / "other", "train").list_hash != data.list_hash


def test_deeper_folders_and_other_suffixes_count_and_other_files_do_not(tmp_path: Path) -> None:
    root, bee = lay(tmp_path / "train"), tmp_path / "train" / "bee"
    (bee / "images").mkdir()  # as Tiny-ImageNet has them
    for name in ("x.JPEG", "y.JPG", "z.webp", "w.bmp"):
        Image.fromarray(picture(0)).save(bee / "images" / name)
    lay(root, {"bee/boxes.txt": b"x", "bee/.hidden.png": b"x", ".cache/a.png": b"x", "note.png": b"x"})
    (bee / "images" / "above").symlink_to(bee)
    data = open_classification(tmp_path, "train")
    assert data.classes.names == ("Ant", "bee", "cat") and data.labels.tolist().count(1) == 7
    assert data.files[6:10] == tuple(f"bee/images/{name}" for name in ("w.bmp", "x.JPEG", "y.JPG", "z.webp"))
    (bee / "1.png").write_bytes(b"not a picture")  # each is read when it is asked for
    np.testing.assert_array_equal(data[3][0], picture(20, 16, 16))
    assert f"{bee / '1.png'}: cannot be read as an image" in refusal(lambda: data[4])


@pytest.mark.parametrize(("folder", "method"), [("", zipfile.ZIP_STORED), ("train/", zipfile.ZIP_DEFLATED)])
def test_a_folder_around_the_classes_in_an_archive_changes_nothing(tmp_path: Path, folder: str, method: int) -> None:
    more = {f"{folder}read.txt": b"x", "__MACOSX/cat/0.png": b"x", f"{folder}cat/.0.png": b"x"}
    pack(tmp_path / "train.zip", pictures(folder) | more, method)
    data = open_classification(tmp_path, "train")
    assert data.classes.names == ("Ant", "bee", "cat") and len(data) == 9


def test_grey_palette_and_transparent_pictures_become_rgb(tmp_path: Path) -> None:
    for mode in ("RGB", "L", "1", "P", "LA", "RGBA"):
        original = Image.fromarray(picture(1)).convert(mode)
        original.save(tmp_path / "i.png")
        np.testing.assert_array_equal(read_picture(tmp_path / "i.png"), np.asarray(original.convert("RGB")), mode)


@pytest.mark.parametrize("shape", [(300, 400), (400, 300), (256, 256), (97, 1000), (31, 30)])
def test_the_centre_view_is_torchvision_s_resize_and_centre_crop(shape: tuple[int, int]) -> None:
    from torchvision.transforms import v2

    image = picture(3, *shape)
    for size, resized in ((224, 256), (64, 73)):
        theirs = v2.Compose([v2.Resize(resized), v2.CenterCrop(size)])(Image.fromarray(image))
        np.testing.assert_array_equal(centre_view(image, size), np.asarray(theirs))


def test_a_square_picture_is_seen_whole_and_another_in_its_middle() -> None:
    square, wide = picture(3, 32, 32), picture(3, 32, 48)
    assert whole_view(square, 32) is square
    resized = np.asarray(Image.fromarray(square).resize((48, 48), 2))
    np.testing.assert_array_equal(square_view(square, 48), resized)
    np.testing.assert_array_equal(square_view(wide, 16), centre_view(wide, 16))


def test_damaged_pictures_and_pictures_of_other_modes_are_named_once(tmp_path: Path) -> None:
    for mode, name in (("I;16", "i.png"), ("F", "i.tif"), ("I", "i.tif")):
        Image.new(mode, (4, 4)).save(tmp_path / name)
        message = refusal(read_picture, tmp_path / name)
        assert f"mode {mode}" in message and str(tmp_path / name) in message
    for suffix in (".png", ".jpg"):
        whole, path = tmp_path / f"whole{suffix}", tmp_path / f"x{suffix}"
        Image.fromarray(picture(1, 64, 64)).save(whole)
        for content in (b"", whole.read_bytes()[:900], whole.read_bytes()[:20]):
            path.write_bytes(content)
            assert refusal(read_picture, path).count(str(path)) == 1


def without(content: Content, *names: str) -> Content:
    return {name: data for name, data in content.items() if not name.startswith(names)}


def two_splits(root: Path) -> None:
    lay(root / "train", without(GOOD, "bee"))
    lay(root / "val")


FOLDERS: dict[str, tuple[Callable[[Path], object], str, str]] = {
    "absent": (lambda root: None, "train", "no such folder"),
    "file": (lambda root: root.write_text(""), "train", "no such folder"),
    "empty": (lambda root: root.mkdir(), "train", "neither CIFAR"),
    "no split": (lambda root: [lay(root / name) for name in ("train", "val")], "test", "there is train/, val/"),
    "unknown split": (lambda root: lay(root / "train"), "night", "no split 'night'"),
    "no labels": (lambda root: lay(root / "test", {"1.png": encoded(0)}), "test", "test/: holds no class folders"),
    "empty class": (lambda root: lay(root / "train", without(GOOD, "bee") | {"bee/x.txt": b""}), "train", "no images"),
    "one class": (lambda root: lay(root / "train", without(GOOD, "bee", "cat")), "train", "two or more"),
    "other classes": (two_splits, "train", "bee is in val/ alone"),
    "other classes here": (two_splits, "val", "bee is in val/ alone"),
    "no archive of it": (lambda root: pack(root / "train.zip"), "test", "there is train.zip"),
    "other archive": (
        lambda root: [pack(root / "train.zip"), pack(root / "val.zip", {"cat/0.png": encoded(0)})],
        "train",
        "train.zip and val.zip have different class folders (Ant is in train.zip alone)",
    ),
    "both": (lambda root: [pack(root / "val.zip"), lay(root / "train")], "train", "holds train/ and val.zip"),
}


@pytest.mark.parametrize("fault", FOLDERS)
def test_a_faulty_folder_gets_one_line_that_names_it(tmp_path: Path, fault: str) -> None:
    make, split, expected = FOLDERS[fault]
    make(tmp_path / "d")
    message = refusal(open_classification, tmp_path / "d", split)
    assert expected in message and str(tmp_path / "d") in message


def packed(more: Content, method: int = zipfile.ZIP_DEFLATED) -> Callable[[Path], object]:
    return lambda path: pack(path, GOOD | more, method)


def with_header(offset: int, form: str, value: int) -> Callable[[Path], object]:
    """Makes an archive with a field of its first entry in the central directory overwritten."""

    def make(path: Path) -> None:
        content = bytearray(pack(path).read_bytes())
        struct.pack_into(form, content, content.index(b"PK\x01\x02") + offset, value)
        path.write_bytes(content)

    return make


def doubled(path: Path) -> None:
    with zipfile.ZipFile(path, "w") as archive, pytest.warns(UserWarning, match="Duplicate"):
        for name in ("cat/0.png", "bee/0.png", "cat/0.png"):
            archive.writestr(name, encoded(0))


HEADER = struct.pack(">I4sIIBBBBBI", 13, b"IHDR", 2**15, 2**15, 8, 2, 0, 0, 0, 0)
HUGE = b"\x89PNG\r\n\x1a\n" + HEADER
"""A PNG of more pixels than the decoder takes."""

ARCHIVES: dict[str, tuple[Callable[[Path], object], str]] = {
    "no archive": (lambda path: path.write_bytes(b"not a zip"), "cannot be read as a zip archive"),
    "no folders": (lambda path: pack(path, {"0.png": b"", "1.png": b""}), "no class folders with images"),
    "one class": (lambda path: pack(path, {"cat/0.png": encoded(0)}), "class"),
    "parent": (packed({"../cat/9.png": b""}), "'../cat/9.png'; expected CLASS/NAME"),
    "absolute": (packed({"/etc/cat/9.png": b""}), "'/etc/cat/9.png'; expected CLASS/NAME"),
    "backslash": (packed({"cat\\..\\9.png": b""}), "expected CLASS/NAME"),
    "twice": (doubled, "holds cat/0.png twice"),
    "other size": (packed({"cat/9.png": encoded(0, 16, 17)}), "cat/9.png has 17x16 pixels, the first picture 16x16"),
    "no picture": (packed({"bee/9.png": b"junk"}), "bee/9.png: cannot be read as an image"),
    "huge picture": (packed({"Ant/0.png": HUGE}), "Ant/0.png"),
    "bzip2": (packed({}, zipfile.ZIP_BZIP2), "another method than deflate"),
    "bomb": (packed({"cat/9.png": bytes(image_folder.MAX_PICTURE_BYTES + 1)}), "cat/9.png unpacks to"),
    "encrypted": (with_header(8, "<H", 1), "is encrypted"),
    "longer than it says": (with_header(24, "<I", 99), "cannot be unpacked"),
    "wrong sum": (with_header(16, "<I", 7), "cannot be unpacked"),
    "elsewhere": (with_header(42, "<I", 50), "cannot be unpacked"),
}


@pytest.mark.parametrize("fault", ARCHIVES)
def test_a_faulty_archive_gets_one_line_that_names_it(tmp_path: Path, fault: str) -> None:
    make, expected = ARCHIVES[fault]
    make(tmp_path / "train.zip")
    message = refusal(open_classification, tmp_path, "train")
    assert expected in message and str(tmp_path / "train.zip") in message


def test_more_pictures_than_memory_is_kept_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pack(tmp_path / "train.zip")
    monkeypatch.setattr(image_folder, "MAX_ARRAY_BYTES", 9 * 16 * 16 * 3 - 1)
    message = refusal(open_classification, tmp_path, "train")
    assert "9 pictures of 16x16" in message and "unpack it into train/" in message
    monkeypatch.setattr(image_folder, "MAX_ENTRIES", 8)
    assert "9 files, at most 8" in refusal(open_classification, tmp_path, "train")


def test_the_real_sample_is_what_torchvision_reads(data_dir: Path) -> None:
    from torchvision.datasets import ImageFolder

    root = data_dir / "imagenet-sample" / "tiny-imagenet-10"
    if not root.is_dir():
        pytest.skip(f"no imagenet-sample/tiny-imagenet-10 in {data_dir}")
    theirs, ours = ImageFolder(str(root / "val")), open_classification(root, "val")
    assert len(ours) == 200 and list(ours.classes.names) == theirs.classes and ours.labels.tolist() == theirs.targets
    assert [str(root / "val" / file) for file in ours.files] == [path for path, _ in theirs.samples]
    for index in range(0, 200, 7):
        np.testing.assert_array_equal(ours[index][0], np.asarray(theirs[index][0]))
