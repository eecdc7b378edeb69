"""CIFAR: made copies with every fault, and the real subset against torchvision's reader."""

import pickle
import struct
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from refusals import refusal

from steadyseg.classification.data.cifar import CIFAR10, CIFAR100, CifarLayout
from steadyseg.classification.data.labelled import ClassificationSet
from steadyseg.classification.data.open import open_classification

NAMES = {10: [f"name {number}" for number in range(10)], 100: [f"fine {number}" for number in range(100)]}


def python2_pickle(value: Any) -> bytes:
    """Protocol 2 as Python 2's cPickle wrote the official files: byte strings, memo numbers, numpy.core.multiarray."""
    memo = 0

    def remembered(code: bytes) -> bytes:
        nonlocal memo
        memo += 1
        return code + (b"q" + bytes([memo - 1]) if memo <= 256 else b"r" + struct.pack("<I", memo - 1))

    def coded(value: Any) -> bytes:
        if value is None or isinstance(value, bool):
            return {None: b"N", True: b"\x88", False: b"\x89"}[value]
        if isinstance(value, int):
            if 0 <= value < 256:
                return b"K" + bytes([value])
            return b"M" + struct.pack("<H", value) if 0 <= value < 65536 else b"J" + struct.pack("<i", value)
        if isinstance(value, str):
            value = value.encode("latin-1")
        if isinstance(value, bytes):
            short = len(value) < 256
            return remembered((b"U" + bytes([len(value)]) if short else b"T" + struct.pack("<i", len(value))) + value)
        if isinstance(value, list):
            return remembered(b"]") + b"(" + b"".join(map(coded, value)) + b"e"
        if isinstance(value, dict):
            return remembered(b"}") + b"(" + b"".join(coded(key) + coded(item) for key, item in value.items()) + b"u"
        assert isinstance(value, np.ndarray)
        start = remembered(b"cnumpy.core.multiarray\n_reconstruct\n") + remembered(b"cnumpy\nndarray\n")
        start += remembered(b"K\x00\x85") + coded("b") + remembered(b"\x87") + remembered(b"R")
        shape = b"(" + b"".join(map(coded, value.shape)) + b"t"
        dtype = remembered(b"cnumpy\ndtype\n") + coded("u1") + b"K\x00K\x01" + remembered(b"\x87") + remembered(b"R")
        dtype += b"(K\x03" + coded("|") + b"NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK\x00" + remembered(b"t") + b"b"
        return (
            start + b"(K\x01" + remembered(shape) + dtype + b"\x89" + coded(value.tobytes()) + remembered(b"t") + b"b"
        )

    return b"\x80\x02" + coded(value) + b"."


def batch(layout: CifarLayout, seed: int, count: int = 20) -> dict[str, Any]:
    generator = np.random.default_rng(seed)
    record = {
        "batch_label": "training batch",
        layout.labels_key: generator.integers(0, layout.class_count, count).tolist(),
        "data": generator.integers(0, 256, (count, 3072), dtype=np.uint8),
        "filenames": [f"{i}.png" for i in range(count)],
    }
    return record | ({"coarse_labels": [0] * count} if layout is CIFAR100 else {})


def made(root: Path, layout: CifarLayout = CIFAR10, dump: Callable[[Any], bytes] = python2_pickle) -> Path:
    folder = root / layout.folder
    folder.mkdir(parents=True)
    names = {layout.names_key: NAMES[layout.class_count], "num_vis": 3072}
    (folder / layout.meta).write_bytes(dump(names))
    for seed, name in enumerate(name for files in layout.files.values() for name in files):
        (folder / name).write_bytes(dump(batch(layout, seed)))
    return root


def replaced(root: Path, name: str, **changes: Any) -> Path:
    """CIFAR-10 with other values in one batch; None takes a key away."""
    record = batch(CIFAR10, 0) | changes
    content = pickle.dumps({key: value for key, value in record.items() if value is not None}, 4)
    (made(root) / CIFAR10.folder / name).write_bytes(content)
    return root


@pytest.mark.parametrize("layout", [CIFAR10, CIFAR100])
@pytest.mark.parametrize(
    "dump", [python2_pickle, lambda record: pickle.dumps(record, 4)], ids=["Python 2", "protocol 4"]
)
def test_every_pixel_is_in_its_place(tmp_path: Path, layout: CifarLayout, dump: Callable[[Any], bytes]) -> None:
    root = made(tmp_path, layout, dump)
    expected = [batch(layout, seed) for seed in range(5 if layout is CIFAR10 else 1)]
    data = open_classification(root, "train")
    assert len(data) == 20 * len(expected) and data.name == layout.name and data.default_size == 32
    assert data.classes.names == tuple(NAMES[layout.class_count]) and data.classes.void is None
    assert data.labels.dtype == np.int64
    assert data.labels.tolist() == [label for part in expected for label in part[layout.labels_key]]
    for index in (0, 19, len(data) - 1):
        image, label = data[index]
        assert image.shape == (32, 32, 3) and image.dtype == np.uint8 and image.flags.c_contiguous
        row = expected[index // 20]["data"][index % 20]
        for y, x, channel in ((0, 0, 0), (0, 1, 0), (1, 0, 2), (31, 30, 1), (7, 19, 2)):
            assert image[y, x, channel] == row[1024 * channel + 32 * y + x]
        assert label == data.labels[index] and type(label) is int
    seed = len(expected)
    assert open_classification(root, "test").labels.tolist() == batch(layout, seed)[layout.labels_key]


@pytest.mark.parametrize("layout", [CIFAR10, CIFAR100])
def test_the_folder_above_and_a_renamed_one_are_found_too(tmp_path: Path, layout: CifarLayout) -> None:
    root = made(tmp_path, layout)
    above, itself = open_classification(root, "test"), open_classification(root / layout.folder, "test")
    renamed = (root / layout.folder).rename(root / "mine")
    assert above.list_hash == itself.list_hash == open_classification(renamed, "test").list_hash


def test_two_data_sets_in_one_folder_are_not_chosen_from(tmp_path: Path) -> None:
    made(tmp_path, CIFAR10)
    made(tmp_path, CIFAR100)
    assert str(tmp_path / CIFAR10.folder) in refusal(lambda: open_classification(tmp_path, "train"))
    assert open_classification(tmp_path / CIFAR100.folder, "train").name == "cifar100"


def test_cifar_has_no_val(tmp_path: Path) -> None:
    assert "'val'" in refusal(lambda: open_classification(made(tmp_path), "val"))


def test_a_subset_keeps_the_asked_order_and_has_a_hash_of_its_own(tmp_path: Path) -> None:
    data = open_classification(made(tmp_path), "train")
    part: ClassificationSet = data.subset([7, 2])
    np.testing.assert_array_equal(part[1][0], data[2][0])
    assert part.labels.tolist() == [data[7][1], data[2][1]] and len(part) == 2 and part.classes == data.classes
    again = data.subset(np.array([7, 2]))
    assert part.list_hash == again.list_hash and len(part.list_hash) == 12
    assert len({part.list_hash, data.list_hash, data.subset([2, 7]).list_hash, data.subset([7]).list_hash}) == 4


def test_the_evaluated_view_is_the_picture_itself(tmp_path: Path) -> None:
    data = open_classification(made(tmp_path), "test")
    image = data[0][0]
    assert data.evaluation_view(image, 32) is image
    assert data.evaluation_view(image, 64).shape == (64, 64, 3)
    flat = np.full((32, 32, 3), 77, np.uint8)
    assert (data.evaluation_view(flat, 48) == 77).all()


# faults


@pytest.mark.parametrize("name", ["data_batch_3", "batches.meta"])
def test_a_missing_file_is_named(tmp_path: Path, name: str) -> None:
    path = made(tmp_path) / CIFAR10.folder / name
    path.unlink()
    assert f"{path}: missing" in refusal(lambda: open_classification(tmp_path, "train"))


def test_an_empty_folder_of_the_right_name_is_incomplete(tmp_path: Path) -> None:
    (tmp_path / CIFAR100.folder).mkdir()
    assert str(tmp_path / CIFAR100.folder / "meta") in refusal(lambda: open_classification(tmp_path, "train"))


def test_a_truncated_batch_is_named(tmp_path: Path) -> None:
    path = made(tmp_path) / CIFAR10.folder / "data_batch_5"
    path.write_bytes(path.read_bytes()[:-2000])
    assert f"{path}: damaged" in refusal(lambda: open_classification(tmp_path, "train"))


class Hostile:
    def __reduce__(self) -> tuple[Any, ...]:
        return eval, ("open('/tmp/never', 'w')",)


@pytest.mark.parametrize("name", ["test_batch", "batches.meta"])
def test_a_hostile_file_names_what_it_wanted(tmp_path: Path, name: str) -> None:
    (made(tmp_path) / CIFAR10.folder / name).write_bytes(pickle.dumps({"data": Hostile()}))
    message = refusal(lambda: open_classification(tmp_path, "test"))
    assert "builtins.eval" in message and name in message


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"data": None}, "no whole array of bytes"),
        ({"data": [1, 2]}, "no whole array of bytes"),
        ({"data": np.zeros((20, 3072), np.float32)}, "no whole array of bytes"),
        ({"data": np.full((20, 3072), "a", object)}, "no whole array of bytes"),
        ({"data": np.zeros((20, 3071), np.uint8)}, "shape (20, 3071)"),
        ({"data": np.zeros((20, 32, 96), np.uint8)}, "shape (20, 32, 96)"),
        ({"data": np.zeros(3072, np.uint8)}, "shape (3072,)"),
        ({"data": np.zeros((0, 3072), np.uint8), "labels": []}, "no whole array of bytes"),
        ({"labels": None}, "no list of labels"),
        ({"labels": "a" * 20}, "no list of labels"),
        ({"labels": [1] * 19}, "20 images and 19 labels"),
        ({"labels": [1] * 19 + [10]}, "0..9"),
        ({"labels": [1] * 19 + [-1]}, "0..9"),
        ({"labels": [1] * 19 + [None]}, "0..9"),
        ({"labels": [1] * 19 + [True]}, "0..9"),
        ({"labels": [1] * 19 + [10**600]}, "0..9"),
    ],
)
def test_a_batch_of_another_shape_is_refused(tmp_path: Path, changes: dict[str, Any], says: str) -> None:
    message = refusal(lambda: open_classification(replaced(tmp_path, "data_batch_2", **changes), "train"))
    assert says in message and str(tmp_path / CIFAR10.folder / "data_batch_2") in message


@pytest.mark.parametrize(
    ("names", "says"),
    [
        (NAMES[100], "no list of 10 label_names"),
        ("abcdefghij", "no list of 10 label_names"),
        (None, "no list of 10"),
        ([1] * 10, "something else than names"),
        (["a"] * 10, "'a' 10 times"),
        ([""] * 10, "something else than names"),
    ],
)
def test_a_list_of_names_that_does_not_fit_is_refused(tmp_path: Path, names: Any, says: str) -> None:
    path = made(tmp_path) / CIFAR10.folder / "batches.meta"
    path.write_bytes(pickle.dumps({"label_names": names}, 4))
    message = refusal(lambda: open_classification(tmp_path, "train"))
    assert says in message and str(path) in message


# the real subsets


@pytest.mark.parametrize(("split", "per_class"), [("train", (500, 15)), ("test", (100, 5))])
@pytest.mark.parametrize("hundred", [False, True])
def test_the_real_subset_is_what_torchvision_reads(
    data_dir: Path, monkeypatch: pytest.MonkeyPatch, split: str, per_class: tuple[int, int], hundred: bool
) -> None:
    from torchvision import datasets

    library = datasets.CIFAR100 if hundred else datasets.CIFAR10
    root = data_dir / ("cifar100" if hundred else "cifar10")
    if not root.is_dir():
        pytest.skip(f"no {root.name} in {data_dir}")
    for attribute in ("train_list", "test_list"):  # the subset is not the official files: no sums to check
        monkeypatch.setattr(library, attribute, [[name, None] for name, _ in getattr(library, attribute)])
    monkeypatch.setattr(library, "meta", library.meta | {"md5": None})
    theirs, ours = library(str(root), train=split == "train"), open_classification(root, split)
    np.testing.assert_array_equal(ours.images, theirs.data)  # type: ignore[attr-defined]
    assert ours.labels.tolist() == theirs.targets
    assert list(ours.classes.names) == theirs.classes
    assert Counter(ours.labels.tolist()) == dict.fromkeys(range(len(ours.classes)), per_class[hundred])
