"""Labelled image folders: made ones with every fault a copy can have, and the real CamVid against its counted facts."""

import struct
from pathlib import Path

import numpy as np
import pytest
from made.pictures import labels, picture
from PIL import Image
from refusals import refusal

from steadyseg.core.classes import CAMVID, ClassList
from steadyseg.core.system.pictures import read_upright
from steadyseg.seg.data.label_folder import open_split, read_label
from steadyseg.seg.data.statistics import class_weights, measure
from steadyseg.seg.options import SegTrainConfig
from steadyseg.seg.training_set import open_training_set

THREE = ClassList(("a", "b", "c"), ((1, 2, 3), (4, 5, 6), (7, 8, 9)), void=255)


def made(root: Path, names: tuple[str, ...] = ("c", "a", "b"), suffix: str = ".png") -> Path:
    for folder in ("train", "trainannot"):
        (root / folder).mkdir(parents=True)
    for seed, name in enumerate(names):
        Image.fromarray(picture(seed)).save(root / "train" / f"{name}{suffix}")
        Image.fromarray(labels(seed)).save(root / "trainannot" / f"{name}.png")
    return root


def test_images_and_labels_are_paired_by_their_base_names(tmp_path: Path) -> None:
    """In natural order: a stream of f2, f10 is no stream of f10, f2."""
    split = open_split(made(tmp_path, ("f10", "f1", "f2")), "train")
    assert [example.name for example in split.examples] == ["f1", "f2", "f10"] and len(split) == 3
    for index, seed in enumerate((1, 2, 0)):
        image, label = split[index]
        np.testing.assert_array_equal(image, picture(seed))  # RGB, as Pillow wrote it
        np.testing.assert_array_equal(label, labels(seed))


def test_other_files_are_passed_over_and_jpegs_are_not(tmp_path: Path) -> None:
    root = made(tmp_path, suffix=".JPEG")
    (root / "train" / "Thumbs.db").write_bytes(b"x")
    (root / "trainannot" / "extra.png").write_bytes(b"x")
    assert len(open_split(root, "train")) == 3


def test_a_stream_has_labelled_frames_and_a_subset_keeps_its_gaps(tmp_path: Path) -> None:
    split = open_split(made(tmp_path), "train")
    for kept, indices in ((split, [0, 1, 2]), (split.subset(["a", "c"]), [0, 2])):
        frames = list(kept.frames(fps=10.0))
        assert [frame.index for frame in frames] == indices
        assert [frame.time_s for frame in frames] == pytest.approx([index / 10 for index in indices])
        assert [frame.discontinuity for frame in frames] == [True, False, False][: len(frames)]
        assert all(frame.label is not None for frame in frames)


def test_a_missing_label_names_its_files(tmp_path: Path) -> None:
    root = made(tmp_path)
    (root / "trainannot" / "b.png").unlink()
    message = refusal(lambda: open_split(root, "train"))
    assert str(root / "train" / "b.png") in message and str(root / "trainannot" / "b.png") in message


def test_a_list_with_the_paths_of_another_machine_is_read_by_base_names(tmp_path: Path) -> None:
    root = made(tmp_path, ("a", "b", "c.mp4_1"))
    lines = [f"/SegNet/CamVid/train/{n}.png /SegNet/CamVid/trainannot/{n}.png" for n in ("a", "b")] + ["c.mp4_1"]
    (root / "train.txt").write_text("\n".join(lines) + "\n\n")
    assert len(open_split(root, "train")) == 3
    (root / "train.txt").write_text("\n".join([*lines, "/SegNet/CamVid/train/d.png /x/d.png"]))
    message = refusal(lambda: open_split(root, "train"))
    assert str(root / "train.txt") in message and "lists d" in message


@pytest.mark.parametrize("missing", ["train", "trainannot"])
def test_a_missing_folder_is_named(tmp_path: Path, missing: str) -> None:
    root = made(tmp_path)
    (root / missing).rename(root / "elsewhere")
    assert str(root / missing) in refusal(lambda: open_split(root, "train"))


def test_an_empty_folder_is_refused(tmp_path: Path) -> None:
    assert "holds no images" in refusal(lambda: open_split(made(tmp_path, names=()), "train"))


def test_an_image_and_a_label_of_different_sizes_are_refused(tmp_path: Path) -> None:
    root = made(tmp_path)
    Image.fromarray(labels(0, 10, 16)).save(root / "trainannot" / "a.png")
    split = open_split(root, "train")
    message = refusal(lambda: split[0])
    assert "16x10" in message and "16x12" in message and str(root / "trainannot" / "a.png") in message


def test_a_subset_keeps_the_split_s_order_and_knows_what_is_missing(tmp_path: Path) -> None:
    """A name may have dots and spaces: clip.mp4_001 lost its end, and my drive was my."""
    split = open_split(made(tmp_path, ("c.mp4_1", "a", "my b")), "train")
    for part in (split.subset(["train/c.mp4_1.png", "train/my b.png"]), split.spaced(3).without(["a.png"])):
        assert [example.name for example in part.examples] == ["c.mp4_1", "my b"]
    assert "nosuch" in refusal(lambda: split.subset(["a", "nosuch"]))
    assert "nosuch" in refusal(lambda: split.without(["nosuch"]))


def test_a_training_leaves_out_the_listed_images(tmp_path: Path) -> None:
    listed = tmp_path / "near.txt"
    listed.write_text("b\n\n")
    config = SegTrainConfig(data=made(tmp_path / "data"), exclude=listed)
    assert [example.name for example in open_training_set(config, CAMVID).examples] == ["a", "c"]  # type: ignore[union-attr]
    assert "--config exclude" in refusal(
        lambda: open_training_set(SegTrainConfig(data=Path("street"), exclude=listed), CAMVID)
    )
    listed.write_text("\n")
    assert "empty" in refusal(lambda: open_training_set(config, CAMVID))


def test_the_hash_is_that_of_the_frames_and_not_of_their_place(tmp_path: Path) -> None:
    here, there = (open_split(made(tmp_path / name), "train") for name in ("here", "there"))
    assert here.frame_hash == there.frame_hash and len(here.frame_hash) == 12
    assert here.subset(["a", "b"]).frame_hash != here.frame_hash


@pytest.mark.parametrize(("classes", "void", "unknown"), [(CAMVID, 11, 12), (THREE, 255, 3)])
def test_ids_outside_the_class_list_and_void_are_refused(tmp_path, classes, void, unknown):
    path = tmp_path / "l.png"
    known = [[0, len(classes) - 1, void]]
    Image.fromarray(np.array(known, np.uint8)).save(path)
    assert read_label(path, classes).tolist() == known
    Image.fromarray(np.full((4, 4), unknown, np.uint8)).save(path)
    message = refusal(lambda: read_label(path, classes))
    assert f"[{unknown}]" in message and f"{void} (void)" in message and str(path) in message


def test_a_palette_label_is_read_as_ids_and_not_as_colours(tmp_path: Path) -> None:
    picture = Image.fromarray(labels(3))
    picture.putpalette([value for color in CAMVID.palette() for value in color])
    assert picture.mode == "P"
    picture.save(tmp_path / "p.png")
    np.testing.assert_array_equal(read_label(tmp_path / "p.png", CAMVID), labels(3))


@pytest.mark.parametrize("mode", ["RGB", "I;16"])
def test_labels_of_other_kinds_are_refused(tmp_path: Path, mode: str) -> None:
    Image.new(mode, (4, 4)).save(tmp_path / "l.png")
    message = refusal(lambda: read_label(tmp_path / "l.png", CAMVID))
    assert "class ids" in message and mode in message


@pytest.mark.parametrize("mode", ["L", "RGBA", "LA", "P", "1"])
def test_grey_palette_and_transparent_images_become_rgb(tmp_path: Path, mode: str) -> None:
    original = Image.fromarray(picture(1)).convert(mode)
    original.save(tmp_path / "i.png")
    image = read_upright(tmp_path / "i.png")
    np.testing.assert_array_equal(image, np.asarray(original.convert("RGB")))
    assert image.flags.c_contiguous and image.flags.writeable


def damaged(path: Path, whole: bytes, damage: str) -> None:
    data = struct.unpack(">I", whole[whole.index(b"IDAT") - 4 :][:4])[0]
    content = {
        "empty": b"",
        "text": b"not a picture",
        "half": whole[: len(whole) // 2],
        "head": whole[:20],
        "turned bit": whole[:60] + bytes([whole[60] ^ 1]) + whole[61:],
        "chunk length": whole.replace(struct.pack(">I", data) + b"IDAT", struct.pack(">I", data - 10) + b"IDAT"),
    }
    if damage != "absent":
        path.write_bytes(content[damage])


@pytest.mark.parametrize("damage", ["empty", "text", "half", "head", "turned bit", "absent", "chunk length"])
def test_a_damaged_label_or_image_is_named(tmp_path: Path, damage: str) -> None:
    Image.fromarray(labels(1)).save(tmp_path / "l.png")
    damaged(tmp_path / "x.png", (tmp_path / "l.png").read_bytes(), damage)
    assert str(tmp_path / "x.png") in refusal(lambda: read_label(tmp_path / "x.png", CAMVID))
    assert str(tmp_path / "x.png") in refusal(lambda: read_upright(tmp_path / "x.png"))


def slow_median_frequency(pairs: list[tuple[np.ndarray, np.ndarray]], count: int) -> list[float]:
    frequencies = []
    for c in range(count):
        of_class = sum(int((label == c).sum()) for _, label in pairs)
        of_images = sum(label.size for _, label in pairs if (label == c).any())
        frequencies.append(of_class / of_images if of_images else 0.0)
    present = sorted(f for f in frequencies if f)
    middle = (present[(len(present) - 1) // 2] + present[len(present) // 2]) / 2
    return [middle / f if f else 0.0 for f in frequencies]


def test_statistics_are_their_definitions() -> None:
    """Class 2 is in one picture only and class 9 in none; void counts for the colours alone. Blue is constant."""
    pairs = [(picture(seed), labels(seed)) for seed in range(4)]
    for image, _ in pairs:
        image[..., 2] = 77
    for _, label in pairs:
        label[label == 9] = 11
    for _, label in pairs[1:]:
        label[label == 2] = 3
    found = measure(pairs, CAMVID)
    pixels = np.stack([image for image, _ in pairs]).reshape(-1, 3) / 255
    assert found.mean == pytest.approx(pixels.mean(0), abs=1e-6)
    assert found.std == pytest.approx([*pixels.std(0)[:2], 1e-3], abs=1e-6), "no network divides by 0"
    assert found.median_frequency == pytest.approx(slow_median_frequency(pairs, 11), rel=1e-12)
    assert found.median_frequency[9] == 0.0


def test_labels_without_any_class_are_refused() -> None:
    assert "no pixel of any class" in refusal(lambda: measure([(picture(0), np.full((12, 16), 11, np.uint8))], CAMVID))


@pytest.mark.parametrize(("name", "power"), [("none", 0.0), ("softened", 0.3), ("median-frequency", 1.0)])
def test_class_weights_are_powers_of_the_median_frequency(name: str, power: float) -> None:
    statistics = measure([(picture(0), labels(0))], CAMVID)
    config = SegTrainConfig(class_weights=name, soften=0.3)  # type: ignore[arg-type]
    expected = [weight**power for weight in statistics.median_frequency]
    assert class_weights(statistics, config).tolist() == pytest.approx(expected, rel=1e-6)


def test_weights_over_all_pixels_are_those_of_the_counts() -> None:
    """Counts of 48, 24 and 8 pixels have the median 24; the classes that do not occur have no weight."""
    label = np.full((10, 10), 11, np.uint8)
    label[:8, :6], label[:8, 6:9], label[:8, 9] = 0, 4, 7
    empty = np.full((10, 10), 11, np.uint8)  # images without a class count for the other weights only
    pairs = [(np.zeros((10, 10, 3), np.uint8), one) for one in (label, empty)]
    config = SegTrainConfig(class_weights="median-frequency-all")
    weights = class_weights(measure(pairs, CAMVID), config)
    assert weights.tolist() == pytest.approx([0.5, 0, 0, 0, 1, 0, 0, 3, 0, 0, 0])


@pytest.fixture
def camvid(data_dir: Path) -> Path:
    if not (data_dir / "camvid" / "train").is_dir():
        pytest.skip(f"no CamVid in {data_dir}")
    return data_dir / "camvid"


@pytest.mark.parametrize(("split", "count"), [("train", 367), ("val", 101), ("test", 147)])
def test_camvid_is_whole(camvid: Path, split: str, count: int) -> None:
    opened = open_split(camvid, split)
    assert len(opened) == count
    assert opened[0][0].shape == (360, 480, 3) and opened[-1][1].shape == (360, 480)


def test_val_has_the_counted_class_shares(camvid: Path) -> None:
    split = open_split(camvid, "val")
    truth = np.stack([read_label(example.label, CAMVID) for example in split.examples])
    counts = np.bincount(truth.ravel(), minlength=12)[:11]
    shares = 100 * counts / counts.sum()
    assert shares == pytest.approx([9.3, 26.4, 0.6, 29.5, 8.9, 16.6, 0.9, 3.1, 1.8, 0.7, 2.3], abs=0.0501)
    names = [example.name for example in split.examples]
    assert names == [f"0016E5_{number:05d}" for number in range(7959, 8160, 2)]


@pytest.mark.slow
def test_train_has_the_counted_colours_and_class_weights(camvid: Path) -> None:
    split = open_split(camvid, "train")
    found = measure(split, CAMVID)  # type: ignore[arg-type]
    assert found.mean == pytest.approx((0.411895, 0.425133, 0.432671), abs=1e-6)
    assert found.std == pytest.approx((0.307073, 0.311611, 0.307218), abs=1e-6)
    weights = (0.279298, 0.201729, 4.786517, 0.149018, 1.0, 0.421700, 3.846682, 1.973586, 0.788940, 6.374724, 8.858733)
    assert found.median_frequency == pytest.approx(weights, abs=1e-5)
