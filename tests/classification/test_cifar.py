"""CIFAR: made copies, faults, and the real subsets."""

import hashlib
import pickle
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from refusals import refusal
from torchvision.datasets import CIFAR10, CIFAR100

from steadyseg.classification.data import cifar
from steadyseg.classification.data.cifar import Library, published
from steadyseg.classification.data.labelled import ClassificationSet
from steadyseg.classification.data.open import open_classification

CLASSES = {CIFAR10: [f"name {number}" for number in range(10)], CIFAR100: [f"fine {number}" for number in range(100)]}


@pytest.fixture(autouse=True)
def _sums_of_made_files(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cifar, "SUBSETS", dict(cifar.SUBSETS))


def batch(library: Library, seed: int, count: int = 20) -> dict[str, Any]:
    generator = np.random.default_rng(seed)
    return {
        "labels" if library is CIFAR10 else "fine_labels": generator.integers(0, len(CLASSES[library]), count).tolist(),
        "data": generator.integers(0, 256, (count, 3072), dtype=np.uint8),
    }


def made(root: Path, library: Library = CIFAR10) -> Path:
    """A copy whose files are among the known ones."""
    folder = root / library.base_folder
    folder.mkdir(parents=True)
    *batches, meta = published(library)
    records = {name: batch(library, seed) for seed, name in enumerate(batches)}
    records[meta] = {library.meta["key"]: CLASSES[library]}
    for name, record in records.items():
        (folder / name).write_bytes(pickle.dumps(record, 4))
        cifar.SUBSETS[name] = hashlib.md5((folder / name).read_bytes()).hexdigest()
    return root


@pytest.mark.parametrize("layout", [CIFAR10, CIFAR100])
def test_every_pixel_is_in_its_place(tmp_path: Path, layout: Library) -> None:
    root, key = made(tmp_path, layout), "labels" if layout is CIFAR10 else "fine_labels"
    expected = [batch(layout, seed) for seed in range(5 if layout is CIFAR10 else 1)]
    data = open_classification(root, "train")
    assert len(data) == 20 * len(expected) and data.name == layout.__name__.lower() and data.default_size == 32
    assert data.classes.names == tuple(CLASSES[layout]) and data.classes.void is None
    assert data.labels.dtype == np.int64
    assert data.labels.tolist() == [label for part in expected for label in part[key]]
    for index in (0, 19, len(data) - 1):
        image, label = data[index]
        assert image.shape == (32, 32, 3) and image.dtype == np.uint8 and image.flags.c_contiguous
        row = expected[index // 20]["data"][index % 20]
        for y, x, channel in ((0, 0, 0), (0, 1, 0), (1, 0, 2), (31, 30, 1), (7, 19, 2)):
            assert image[y, x, channel] == row[1024 * channel + 32 * y + x]
        assert label == data.labels[index] and type(label) is int and data.evaluation_view(image, 32) is image
    seed = len(expected)
    assert open_classification(root, "test").labels.tolist() == batch(layout, seed)[key]


@pytest.mark.parametrize("layout", [CIFAR10, CIFAR100])
def test_the_folder_above_and_a_renamed_one_are_found_too(tmp_path: Path, layout: Library) -> None:
    root = made(tmp_path, layout)
    above, itself = open_classification(root, "test"), open_classification(root / layout.base_folder, "test")
    renamed = (root / layout.base_folder).rename(root / "mine")
    assert above.list_hash == itself.list_hash == open_classification(renamed, "test").list_hash


def test_two_data_sets_in_one_folder_are_not_chosen_from(tmp_path: Path) -> None:
    made(tmp_path, CIFAR10)
    made(tmp_path, CIFAR100)
    assert str(tmp_path / CIFAR10.base_folder) in refusal(lambda: open_classification(tmp_path, "train"))
    assert open_classification(tmp_path / CIFAR100.base_folder, "train").name == "cifar100"


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


# faults


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    path = made(tmp_path) / CIFAR10.base_folder / "data_batch_3"
    path.unlink()
    assert f"{path}: missing" in refusal(lambda: open_classification(tmp_path, "train"))


def test_an_empty_folder_of_the_right_name_is_incomplete(tmp_path: Path) -> None:
    (tmp_path / CIFAR100.base_folder).mkdir()
    assert f"{tmp_path / CIFAR100.base_folder / 'train'}: missing" in refusal(
        lambda: open_classification(tmp_path, "train")
    )


class Hostile:
    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Any, ...]:
        return Path.touch, (self.path,)


def test_a_file_with_another_sum_is_refused_before_it_is_read(tmp_path: Path) -> None:
    path = made(tmp_path) / CIFAR10.base_folder / "batches.meta"
    path.write_bytes(pickle.dumps({"data": Hostile(tmp_path / "ran")}))
    message = refusal(lambda: open_classification(tmp_path, "train"))
    assert f"{path}: MD5 {hashlib.md5(path.read_bytes()).hexdigest()}" in message
    assert published(CIFAR10)["batches.meta"] in message and not (tmp_path / "ran").exists()


# the real subsets


@pytest.mark.parametrize(("split", "per_class"), [("train", (500, 15)), ("test", (100, 5))])
@pytest.mark.parametrize("hundred", [False, True])
def test_the_real_subset_is_known_and_balanced(
    data_dir: Path, split: str, per_class: tuple[int, int], hundred: bool
) -> None:
    root = data_dir / ("cifar100" if hundred else "cifar10")
    if not root.is_dir():
        pytest.skip(f"no {root.name} in {data_dir}")
    found = open_classification(root, split)
    assert Counter(found.labels.tolist()) == dict.fromkeys(range(len(found.classes)), per_class[hundred])
    assert found.images is not None and found.images.shape == (len(found), 32, 32, 3)
