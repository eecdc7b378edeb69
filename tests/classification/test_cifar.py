"""CIFAR: made copies, faults, the real subsets, and the download from a real HTTP server on this machine.

Faults of connections are CamVid's tests.
"""

import hashlib
import io
import os
import pickle
import tarfile
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from made.local_server import files_under, send, serving, without_proxy
from refusals import refusal
from torchvision.datasets import CIFAR10, CIFAR100

from steadyseg.app.cli import main
from steadyseg.classification.data import cifar
from steadyseg.classification.data.cifar import Library, download_cifar, published
from steadyseg.classification.data.open import open_classification
from steadyseg.core.system import fetching

CLASSES = {CIFAR10: [f"name {number}" for number in range(10)], CIFAR100: [f"fine {number}" for number in range(100)]}


@pytest.fixture(autouse=True)
def _sums_of_made_files(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cifar, "SUBSETS", set(cifar.SUBSETS))


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
        cifar.SUBSETS.add(hashlib.md5((folder / name).read_bytes()).hexdigest())
    return root


@pytest.mark.parametrize("layout", [CIFAR10, CIFAR100])
def test_every_pixel_is_in_its_place(tmp_path: Path, layout: Library) -> None:
    root, key = made(tmp_path, layout), "labels" if layout is CIFAR10 else "fine_labels"
    expected = [batch(layout, seed) for seed in range(5 if layout is CIFAR10 else 1)]
    data = open_classification(root, "train")
    assert data.name == layout.__name__.lower() and data.default_size == 32
    assert data.classes.names == tuple(CLASSES[layout]) and data.classes.void is None
    assert data.labels.tolist() == [label for part in expected for label in part[key]]
    for index in (0, 19, len(data) - 1):
        image, label = data[index]
        row = expected[index // 20]["data"][index % 20]
        np.testing.assert_array_equal(image, row.reshape(3, 32, 32).transpose(1, 2, 0))
        assert label == data.labels[index] and type(label) is int and data.evaluation_view(image, 32) is image
    assert open_classification(root, "test").labels.tolist() == batch(layout, len(expected))[key]
    part, again = data.subset([7, 2]), data.subset(np.array([7, 2]))
    assert part.labels.tolist() == [data[7][1], data[2][1]] and part.list_hash == again.list_hash
    assert len({part.list_hash, data.list_hash, data.subset([2, 7]).list_hash}) == 3
    itself = open_classification(root / layout.base_folder, "train")
    renamed = (root / layout.base_folder).rename(root / "mine")
    assert data.list_hash == itself.list_hash == open_classification(renamed, "train").list_hash


def both(root: Path) -> None:
    made(root, CIFAR10)
    made(root, CIFAR100)


@pytest.mark.parametrize(
    ("make", "split", "words"),
    [
        (both, "train", f"such as {{}}/{CIFAR10.base_folder}"),
        (made, "val", "not 'val'"),
        (lambda root: (made(root) / CIFAR10.base_folder / "data_batch_3").unlink(), "train", "data_batch_3: missing"),
        (lambda root: (root / CIFAR100.base_folder).mkdir(), "train", f"{{}}/{CIFAR100.base_folder}/train: missing"),
    ],
    ids=["two sets", "no val", "incomplete", "empty"],
)
def test_a_faulty_copy_is_one_line(tmp_path: Path, make: Callable[[Path], object], split: str, words: str) -> None:
    make(tmp_path)
    assert words.format(tmp_path) in refusal(open_classification, tmp_path, split)


class Hostile:
    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Any, ...]:
        return Path.touch, (self.path,)


def test_a_file_with_another_sum_is_refused_before_it_is_read(tmp_path: Path) -> None:
    path = made(tmp_path) / CIFAR10.base_folder / "batches.meta"
    path.write_bytes(pickle.dumps({"data": Hostile(tmp_path / "ran")}))
    message = refusal(open_classification, tmp_path, "train")
    assert f"{path}: MD5 {hashlib.md5(path.read_bytes()).hexdigest()}" in message
    assert published(CIFAR10)["batches.meta"] in message and not (tmp_path / "ran").exists()


@pytest.mark.parametrize(("name", "per_class"), [("cifar10", (500, 100)), ("cifar100", (15, 5))])
def test_the_real_subset_is_known_and_balanced(data_dir: Path, name: str, per_class: tuple[int, int]) -> None:
    if not (data_dir / name).is_dir():
        pytest.skip(f"no {name} in {data_dir}")
    for split, count in zip(("train", "test"), per_class, strict=True):
        found = open_classification(data_dir / name, split)
        assert Counter(found.labels.tolist()) == dict.fromkeys(range(len(found.classes)), count)


FILES = {"train": b"train " * 50_000, "test": b"test " * 1000, "meta": b"meta"}
FOLDER = "cifar-made"


def packed() -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as tar:
        for name, content in FILES.items():
            member = tarfile.TarInfo(f"{FOLDER}/{name}")
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))
    return buffer.getvalue()


CONTENT = packed()
SHA256 = hashlib.sha256(CONTENT).hexdigest()


@pytest.fixture
def requests() -> list[str]:
    return []


@pytest.fixture
def library(requests: list[str], monkeypatch: pytest.MonkeyPatch) -> Iterator[Library]:
    monkeypatch.setattr(fetching, "PAUSES_S", (0.01, 0.02))
    without_proxy(monkeypatch)

    def answer(handler: BaseHTTPRequestHandler) -> None:
        requests.append(handler.path)
        send(handler, CONTENT)

    sums = {name: hashlib.md5(content).hexdigest() for name, content in FILES.items()}
    lists = {"train_list": [["train", sums["train"]]], "test_list": [["test", sums["test"]]]}
    lists |= {"meta": {"filename": "meta", "md5": sums["meta"]}}  # type: ignore[dict-item]
    with serving(answer, threading.Event()) as address:
        at = {"url": f"{address}/made.tar.gz", "base_folder": FOLDER, "filename": "made.tar.gz"}
        yield type("Made", (CIFAR10,), at | lists)


def test_the_command_fetches_once_and_says_where(library, requests, tmp_path, monkeypatch, capsys):
    monkeypatch.setitem(cifar.LIBRARIES, "cifar100", library)
    monkeypatch.setitem(cifar.SHA256, "cifar100", SHA256)
    root = tmp_path / "data" / "cifar100"
    (root / fetching.PARTS).mkdir(parents=True)
    (root / fetching.PARTS / "made.tar.gz.1.partial").write_bytes(b"left by a killed run")
    monkeypatch.chdir(root.parent)
    assert main(["data", "cifar100"]) == 0  # into a folder of that name
    shown = capsys.readouterr()
    assert f"cifar100/{FOLDER}: 3 files, fetched" in shown.out and "Krizhevsky" in shown.err
    assert files_under(root) == {f"{FOLDER}/{name}": content for name, content in FILES.items()}
    assert os.listdir(root) == [FOLDER]
    assert main(["data", "cifar100", "-o", str(root)]) == 0
    assert "already there" in capsys.readouterr().out and len(requests) == 1


def test_what_cannot_be_fetched_or_written_is_one_line(library, requests, tmp_path, monkeypatch):
    """Files of the user are never overwritten; a full disk is not a broken connection."""
    root, folder = tmp_path / "root", tmp_path / "root" / FOLDER
    assert "its hash differs" in refusal(download_cifar, library, root, SHA256[::-1])
    assert files_under(root) == {}
    count = len(requests)
    folder.mkdir()
    (folder / "train").write_bytes(b"a subset")
    message = refusal(download_cifar, library, root, SHA256)
    assert f"{folder / 'train'}: missing or not the published file" in message and "move" in message
    message = refusal(download_cifar, library, folder / "train" / "root", SHA256)
    assert str(folder / "train") in message and "cannot be written" in message and len(requests) == count

    def full(*_: object) -> None:
        requests.append("full")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("torch.hub.download_url_to_file", full)
    message = refusal(download_cifar, library, tmp_path / "new", SHA256)
    assert "No space left" in message and "cannot be written" in message and requests[count:] == ["full"]
