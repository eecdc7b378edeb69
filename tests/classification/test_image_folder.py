"""ImageFolders: made ones with every fault, and the real sample against torchvision's reader and transforms."""

from pathlib import Path

import numpy as np
import pytest
from made.pictures import picture
from PIL import Image
from refusals import refusal

from steadyseg.classification.data.labelled import centre_view, read_picture, whole_view
from steadyseg.classification.data.open import open_classification


def made(
    root: Path, splits: tuple[str, ...] = ("train", "val"), classes: tuple[str, ...] = ("cat", "Ant", "bee")
) -> Path:
    for split in splits:
        for place, name in enumerate(classes):
            (root / split / name).mkdir(parents=True)
            for number in range(3):
                Image.fromarray(picture(10 * place + number)).save(root / split / name / f"{number}.png")
    return root


def test_class_ids_go_by_the_sorted_folder_names(tmp_path: Path) -> None:
    data = open_classification(made(tmp_path / "mine"), "train")
    assert data.classes.names == ("Ant", "bee", "cat") and data.classes.void is None
    assert data.labels.tolist() == [0, 0, 0, 1, 1, 1, 2, 2, 2] and data.labels.dtype == np.int64
    assert len(data) == 9 and data.name == "mine" and data.default_size == 224
    for index, (seed, label) in enumerate(
        [(10 * place + n, label) for label, place in enumerate((1, 2, 0)) for n in range(3)]
    ):
        image, class_id = data[index]
        np.testing.assert_array_equal(image, picture(seed))  # RGB, as Pillow wrote it
        assert class_id == label and type(class_id) is int and image.flags.writeable


def test_deeper_folders_and_other_suffixes_count_and_other_files_do_not(tmp_path: Path) -> None:
    root = made(tmp_path, ("train",))
    (root / "train" / "bee" / "images").mkdir()  # as Tiny-ImageNet has them
    for name in ("x.JPEG", "y.JPG", "z.webp", "w.bmp"):
        Image.fromarray(picture(0)).save(root / "train" / "bee" / "images" / name)
    (root / "train" / "bee" / "boxes.txt").write_text("x")
    (root / "train" / "bee" / ".hidden.png").write_text("x")
    (root / "train" / ".cache").mkdir()
    (root / "train" / "note.png").write_text("x")
    (root / "train" / "bee" / "images" / "above").symlink_to(root / "train" / "bee")
    data = open_classification(root, "train")
    assert data.classes.names == ("Ant", "bee", "cat") and data.labels.tolist().count(1) == 7
    assert data.files[6:10] == tuple(f"bee/images/{name}" for name in ("w.bmp", "x.JPEG", "y.JPG", "z.webp"))  # type: ignore[attr-defined]
    for index in range(len(data)):
        data[index]


def test_only_the_asked_picture_is_read(tmp_path: Path) -> None:
    root = made(tmp_path)
    damaged = root / "train" / "bee" / "1.png"
    damaged.write_bytes(b"not a picture")
    data = open_classification(root, "train")
    np.testing.assert_array_equal(data[3][0], picture(20))
    assert f"{damaged}: cannot be read as an image" in refusal(lambda: data[4])


# faults


def test_an_absent_folder_and_one_of_another_kind_are_named(tmp_path: Path) -> None:
    assert "no such folder" in refusal(lambda: open_classification(tmp_path / "nowhere", "train"))
    (tmp_path / "file").write_text("")
    assert "no such folder" in refusal(lambda: open_classification(tmp_path / "file", "train"))
    message = refusal(lambda: open_classification(tmp_path, "train"))
    assert str(tmp_path) in message and "CIFAR" in message and "train/CLASS/*.jpg" in message


def test_an_absent_split_says_which_there_are(tmp_path: Path) -> None:
    for split in ("test", "night"):
        message = refusal(lambda split=split: open_classification(made(tmp_path / split), split))
        assert repr(split) in message and "there is train, val" in message


def test_a_split_without_classes_is_refused(tmp_path: Path) -> None:
    root = made(tmp_path, ("train",))
    (root / "test").mkdir()
    Image.fromarray(picture(0)).save(root / "test" / "0001.png")  # as ImageNet's test set is: without labels
    assert f"{root / 'test'}: holds no class folders" in refusal(lambda: open_classification(root, "test"))
    assert len(open_classification(root, "train")) == 9


def test_an_empty_class_is_refused(tmp_path: Path) -> None:
    root = made(tmp_path)
    for path in (root / "train" / "bee").iterdir():
        path.unlink()
    (root / "train" / "bee" / "note.txt").write_text("x")
    assert f"{root / 'train' / 'bee'}: holds no images" in refusal(lambda: open_classification(root, "train"))


def test_one_class_is_no_classification(tmp_path: Path) -> None:
    assert "two or more" in refusal(lambda: open_classification(made(tmp_path, classes=("one",)), "train"))


@pytest.mark.parametrize("opened", ["train", "val"])
def test_other_classes_in_another_split_are_refused(tmp_path: Path, opened: str) -> None:
    root = made(tmp_path)
    (root / "train" / "bee").rename(tmp_path / "elsewhere")
    message = refusal(lambda: open_classification(root, opened))
    assert "bee is in val/ alone" in message and "train/" in message


# pictures


@pytest.mark.parametrize("mode", ["RGB", "L", "1", "P", "LA", "RGBA"])
def test_grey_palette_and_transparent_pictures_become_rgb(tmp_path: Path, mode: str) -> None:
    original = Image.fromarray(picture(1)).convert(mode)
    original.save(tmp_path / "i.png")
    found = read_picture(tmp_path / "i.png")
    np.testing.assert_array_equal(found, np.asarray(original.convert("RGB")))
    assert found.shape == (12, 16, 3) and found.dtype == np.uint8 and found.flags.c_contiguous


def test_cmyk_becomes_rgb(tmp_path: Path) -> None:
    flat = Image.new("CMYK", (16, 16), (0, 255, 255, 0))
    flat.save(tmp_path / "i.jpg", quality=100)
    assert np.abs(read_picture(tmp_path / "i.jpg").astype(int) - (255, 0, 0)).max() < 8


@pytest.mark.parametrize(("mode", "name"), [("I;16", "i.png"), ("F", "i.tif"), ("I", "i.tif")])
def test_more_than_8_bits_are_refused(tmp_path: Path, mode: str, name: str) -> None:
    Image.new(mode, (4, 4)).save(tmp_path / name)
    message = refusal(lambda: read_picture(tmp_path / name))
    assert f"mode {mode}" in message and str(tmp_path / name) in message


@pytest.mark.parametrize("suffix", [".png", ".jpg"])
def test_a_damaged_picture_is_named_once(tmp_path: Path, suffix: str) -> None:
    whole, path = tmp_path / f"whole{suffix}", tmp_path / f"x{suffix}"
    assert refusal(read_picture, path).count(str(path)) == 1  # absent
    Image.fromarray(picture(1, 64, 64)).save(whole)
    for content in (b"", whole.read_bytes()[:900], whole.read_bytes()[:20]):
        path.write_bytes(content)
        assert refusal(read_picture, path).count(str(path)) == 1


# the evaluated view


@pytest.mark.parametrize("shape", [(300, 400), (400, 300), (256, 256), (97, 1000), (31, 30)])
@pytest.mark.parametrize(("size", "resized"), [(224, 256), (64, 73)])
def test_the_centre_view_is_torchvision_s_resize_and_centre_crop(
    shape: tuple[int, int], size: int, resized: int
) -> None:
    from torchvision.transforms import v2

    image = picture(3, *shape)
    theirs = v2.Compose([v2.Resize(resized), v2.CenterCrop(size)])(Image.fromarray(image))
    np.testing.assert_array_equal(centre_view(image, size), np.asarray(theirs))


def test_the_whole_view_keeps_what_has_the_size_and_resizes_the_rest() -> None:
    image = picture(3, 32, 32)
    assert whole_view(image, 32) is image
    np.testing.assert_array_equal(whole_view(image, 48), np.asarray(Image.fromarray(image).resize((48, 48), 2)))


# the real sample


@pytest.mark.parametrize(("split", "count"), [("train", 1000), ("val", 200)])
def test_the_real_sample_is_what_torchvision_reads(data_dir: Path, split: str, count: int) -> None:
    from torchvision.datasets import ImageFolder

    root = data_dir / "imagenet-sample" / "tiny-imagenet-10"
    if not root.is_dir():
        pytest.skip(f"no imagenet-sample/tiny-imagenet-10 in {data_dir}")
    theirs, ours = ImageFolder(str(root / split)), open_classification(root, split)
    assert len(ours) == count and list(ours.classes.names) == theirs.classes and ours.name == "tiny-imagenet-10"
    assert ours.labels.tolist() == theirs.targets
    assert [str(root / split / file) for file in ours.files] == [path for path, _ in theirs.samples]  # type: ignore[attr-defined]
    for index in range(0, count, 7):
        np.testing.assert_array_equal(ours[index][0], np.asarray(theirs[index][0]))
    assert open_classification(root, "train").classes == open_classification(root, "val").classes
