"""ImageFolders in archives: the real CIFAR-10 beside a plain reader, made ones, and hostile ones in one line each."""

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
from steadyseg.classification.data.image_folder import open_zip_folder
from steadyseg.classification.data.open import open_classification
from steadyseg.classification.train import measured_colours

CLASSES = ("cat", "Ant", "bee")


def encoded(seed: int, height: int = 16, width: int = 16) -> bytes:
    file = io.BytesIO()
    Image.fromarray(picture(seed, height, width)).save(file, "PNG")
    return file.getvalue()


def pictures(folder: str = "") -> dict[str, bytes]:
    """Three pictures of each class: of seeds 0..2, 10..12 and 20..22."""
    return {
        f"{folder}{name}/{number}.png": encoded(10 * place + number)
        for place, name in enumerate(CLASSES)
        for number in range(3)
    }


def pack(path: Path, content: Mapping[str, bytes], method: int = zipfile.ZIP_DEFLATED) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(path, "w", method) as archive:
        for name, data in content.items():
            archive.writestr(name, data)
    return path


def made(root: Path, splits: tuple[str, ...] = ("train", "test"), folder: str = "") -> Path:
    for split in splits:
        pack(root / f"{split}.zip", pictures(folder))
    return root


# what is read


def test_class_ids_go_by_the_sorted_folder_names_and_pixels_are_those_of_the_files(tmp_path: Path) -> None:
    data = open_classification(made(tmp_path / "mine"), "train")
    assert data.images is not None and data.images.dtype == np.uint8 and data.images.nbytes == 9 * 16 * 16 * 3
    assert data.classes.names == ("Ant", "bee", "cat") and data.classes.void is None
    assert data.labels.tolist() == [0, 0, 0, 1, 1, 1, 2, 2, 2] and data.labels.dtype == np.int64
    assert len(data) == 9 and data.name == "mine" and data.default_size == 16
    for index, seed in enumerate((10, 11, 12, 20, 21, 22, 0, 1, 2)):
        image, class_id = data[index]
        np.testing.assert_array_equal(image, picture(seed, 16, 16))
        assert class_id == data.labels[index] and type(class_id) is int


@pytest.mark.parametrize(("folder", "method"), [("", zipfile.ZIP_STORED), ("train/", zipfile.ZIP_DEFLATED)])
def test_a_folder_around_the_classes_changes_nothing(tmp_path: Path, folder: str, method: int) -> None:
    content = pictures(folder) | {f"{folder}read.txt": b"x", "__MACOSX/cat/0.png": b"x", f"{folder}cat/.0.png": b"x"}
    pack(tmp_path / "train.zip", content, method)
    data = open_classification(tmp_path, "train")
    assert data.classes.names == ("Ant", "bee", "cat") and len(data) == 9


def test_a_square_picture_is_seen_whole_and_another_in_its_middle(tmp_path: Path) -> None:
    square = open_classification(made(tmp_path / "square"), "test")
    np.testing.assert_array_equal(square.evaluation_view(square[0][0], 16), square[0][0])
    assert square.evaluation_view(square[0][0], 8).shape == (8, 8, 3)
    pack(tmp_path / "wide" / "test.zip", {f"{name}/{i}.png": encoded(i, 16, 24) for name in "ab" for i in range(2)})
    wide = open_classification(tmp_path / "wide", "test")
    assert wide.default_size == 16 and wide.evaluation_view(wide[0][0], 16).shape == (16, 16, 3)


def test_a_subset_keeps_the_asked_order_and_has_a_hash_of_its_own(tmp_path: Path) -> None:
    data = open_classification(made(tmp_path / "here"), "train")
    part = data.subset(np.array([8, 0]))
    assert len(part) == 2 and part.labels.tolist() == [2, 0] and part.classes == data.classes
    np.testing.assert_array_equal(part[0][0], picture(2, 16, 16))
    other = pictures() | {"cat/0.png": encoded(99)}
    pack(tmp_path / "other" / "train.zip", other)
    hashes = [
        data.list_hash,
        part.list_hash,
        data.subset([0, 8]).list_hash,
        open_classification(tmp_path / "other", "train").list_hash,
    ]
    assert len(set(hashes)) == 4 and data.list_hash == open_classification(made(tmp_path / "there"), "train").list_hash


def test_colours_are_those_of_all_pixels() -> None:
    images = np.stack([picture(seed, 8, 8) // 3 for seed in range(4)])
    images[..., 2] = 51
    mean, std = measured_colours(images)
    np.testing.assert_allclose(mean, images.mean((0, 1, 2)) / 255, atol=5e-5)
    np.testing.assert_allclose(std[:2], images.std((0, 1, 2))[:2] / 255, atol=5e-5)
    assert mean[2] == 0.2 and std[2] == 1e-3  # no division by 0 where a channel never changes


@pytest.mark.slow
def test_the_real_pictures_are_the_official_ones_but_for_their_compression(data_dir: Path) -> None:
    folder = data_dir / "cifar10-jpeg"
    if not folder.is_dir():
        pytest.skip(f"no cifar10-jpeg in {data_dir}")
    data = open_classification(folder, "test")
    official = open_classification(data_dir / "cifar10", "test")
    assert len(data) == 10_000 and np.bincount(data.labels).tolist() == 10 * [1000] and data.default_size == 32
    assert data.classes == official.classes
    with zipfile.ZipFile(folder / "test.zip") as archive:  # by Pillow alone
        for index, name in ((0, "airplane/0000.jpg"), (5432, "dog/0432.jpg"), (9999, "truck/0999.jpg")):
            plain = np.asarray(Image.open(io.BytesIO(archive.read(name))).convert("RGB"))
            np.testing.assert_array_equal(data[index][0], plain)
    small = data.images.reshape(-1, 4, 8, 4, 8, 3).mean((2, 4)).reshape(10_000, -1)  # 4 x 4 points
    for index in range(0, len(official), 100):
        image, label = official[index]
        point = image.reshape(4, 8, 4, 8, 3).mean((1, 3)).reshape(-1)
        nearest = int(np.abs(small - point).mean(1).argmin())
        error = np.sqrt(((data.images[nearest].astype(float) - image) ** 2).mean())
        assert data.labels[nearest] == label and error < 12, f"picture {index}: {error:.1f} grey levels RMS"


# what is refused


def with_header(content: bytes, offset: int, form: str, value: int, old: bytes = b"PK\x01\x02") -> bytes:
    """The archive with a field of its first entry in the central directory overwritten."""
    at = content.index(old) + offset
    return content[:at] + struct.pack(form, value) + content[at + struct.calcsize(form) :]


def hostile() -> dict[str, tuple[Callable[[Path], object], str]]:
    """By what is wrong: how the archive is made, and a part of the line that says so."""
    good = pictures()

    def rewritten(change: Callable[[bytes], bytes]) -> Callable[[Path], object]:
        return lambda path: path.write_bytes(change(pack(path, good).read_bytes()))

    def packed(content: Mapping[str, bytes], method: int = zipfile.ZIP_DEFLATED) -> Callable[[Path], object]:
        return lambda path: pack(path, content, method)

    def doubled(path: Path) -> None:
        with zipfile.ZipFile(path, "w") as archive, pytest.warns(UserWarning, match="Duplicate"):
            for name in ("cat/0.png", "bee/0.png", "cat/0.png"):
                archive.writestr(name, encoded(0))

    return {
        "no archive": (lambda path: path.write_bytes(b"not a zip"), "cannot be read as a zip archive"),
        "no folders": (packed({"0.png": encoded(0), "1.png": encoded(1)}), "no class folders with images"),
        "one class": (packed({"cat/0.png": encoded(0)}), "class"),
        "parent": (packed(good | {"../cat/9.png": encoded(0)}), "'../cat/9.png'; expected CLASS/NAME"),
        "absolute": (packed(good | {"/etc/cat/9.png": encoded(0)}), "'/etc/cat/9.png'; expected CLASS/NAME"),
        "backslash": (packed(good | {"cat\\..\\9.png": encoded(0)}), "expected CLASS/NAME"),
        "twice": (doubled, "holds cat/0.png twice"),
        "other size": (
            packed(good | {"cat/9.png": encoded(0, 16, 17)}),
            "cat/9.png has 17x16 pixels, the first picture 16x16",
        ),
        "no picture": (packed(good | {"bee/9.png": b"junk"}), "bee/9.png: cannot be read as an image"),
        "bzip2": (packed(good, zipfile.ZIP_BZIP2), "another method than deflate"),
        "encrypted": (rewritten(lambda content: with_header(content, 8, "<H", 1)), "is encrypted"),
        "bomb": (packed(good | {"cat/9.png": bytes(image_folder.MAX_PICTURE_BYTES + 1)}), "cat/9.png unpacks to"),
        "longer than it says": (rewritten(lambda content: with_header(content, 24, "<I", 99)), "cannot be unpacked"),
        "wrong sum": (rewritten(lambda content: with_header(content, 16, "<I", 7)), "cannot be unpacked"),
        "elsewhere": (rewritten(lambda content: with_header(content, 42, "<I", 50)), "cannot be unpacked"),
    }


@pytest.mark.parametrize("fault", hostile())
def test_a_faulty_archive_gets_one_line_that_names_it(tmp_path: Path, fault: str) -> None:
    make, expected = hostile()[fault]
    make(tmp_path / "train.zip")
    message = refusal(lambda: open_classification(tmp_path, "train"))
    assert expected in message and str(tmp_path / "train.zip") in message


def test_a_picture_of_more_pixels_than_the_decoder_takes_is_not_decoded(tmp_path: Path) -> None:
    header = struct.pack(">IIBBBBB", 2**15, 2**15, 8, 2, 0, 0, 0)
    huge = b"\x89PNG\r\n\x1a\n" + struct.pack(">I", 13) + b"IHDR" + header + struct.pack(">I", 0)
    pack(tmp_path / "train.zip", {"a/0.png": huge, "b/0.png": huge})
    assert "a/0.png" in refusal(lambda: open_classification(tmp_path, "train"))


def test_more_pictures_than_memory_is_kept_for_are_told_by_their_number(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(image_folder, "MAX_ARRAY_BYTES", 9 * 16 * 16 * 3 - 1)
    message = refusal(lambda: open_classification(made(tmp_path), "train"))
    assert "9 pictures of 16x16" in message and "unpack it into train/" in message
    monkeypatch.setattr(image_folder, "MAX_ENTRIES", 8)
    assert "9 files, at most 8" in refusal(lambda: open_classification(tmp_path, "train"))


def test_splits_must_agree_and_be_there(tmp_path: Path) -> None:
    made(tmp_path, ("train", "val"))
    message = refusal(lambda: open_classification(tmp_path, "test"))
    assert "no split 'test'" in message and "train.zip, val.zip" in message
    pack(tmp_path / "val.zip", {"cat/0.png": encoded(0), "dog/0.png": encoded(1)})
    message = refusal(lambda: open_zip_folder(tmp_path, "train"))
    assert "train.zip and val.zip have different class folders" in message and "Ant is in train.zip alone" in message
    (tmp_path / "train").mkdir()
    assert "holds train/ and train.zip" in refusal(lambda: open_classification(tmp_path, "train"))
