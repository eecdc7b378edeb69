"""The download of CIFAR against a real HTTP server on this machine; faults of connections are CamVid's tests."""

import hashlib
import io
import os
import tarfile
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from pathlib import Path

import pytest
from made.local_server import Respond, files_under, send, serving, without_proxy
from refusals import refusal
from torchvision.datasets import CIFAR10

from steadyseg.app.cli import main
from steadyseg.classification.data import cifar
from steadyseg.classification.data.cifar import Library, download_cifar
from steadyseg.core.system import fetching
from steadyseg.core.system.fetching import PARTS

FILES = {"train": b"train " * 50_000, "test": b"test " * 1000, "meta": b"meta"}
FOLDER = "cifar-made"


def packed(files: dict[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as tar:
        for name, content in files.items():
            member = tarfile.TarInfo(f"{FOLDER}/{name}")
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))
    return buffer.getvalue()


CONTENT = packed(FILES)
SHA256 = hashlib.sha256(CONTENT).hexdigest()
WHOLE = {f"{FOLDER}/{name}": content for name, content in FILES.items()}


@dataclass
class Server:
    """What the handler thread and the test share."""

    respond: Respond = send
    requests: int = 0
    closing: threading.Event = field(default_factory=threading.Event)

    def answer(self, handler: BaseHTTPRequestHandler) -> None:
        self.requests += 1
        self.respond(handler, CONTENT, self.requests)


@pytest.fixture(autouse=True)
def _quick_and_direct(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fetching, "PAUSES_S", (0.01, 0.02))
    without_proxy(monkeypatch)


@pytest.fixture
def server() -> Server:
    return Server()


def library_at(url: str) -> Library:
    sums = {name: hashlib.md5(content).hexdigest() for name, content in FILES.items()}
    found = {"url": url, "base_folder": FOLDER, "filename": "made-python.tar.gz"}
    lists = {"train_list": [["train", sums["train"]]], "test_list": [["test", sums["test"]]]}
    return type("Made", (CIFAR10,), found | lists | {"meta": {"filename": "meta", "md5": sums["meta"]}})


@pytest.fixture
def library(server: Server) -> Iterator[Library]:
    with serving(server.answer, server.closing) as address:
        yield library_at(f"{address}/made-python.tar.gz")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "data" / "cifar"


def download_fails(library: Library, root: Path) -> str:
    return refusal(download_cifar, library, root, SHA256)


def test_the_folder_is_there_afterwards_and_needs_no_network_again(
    server: Server, library: Library, root: Path
) -> None:
    (root / PARTS).mkdir(parents=True)
    (root / PARTS / "made-python.tar.gz.1.partial").write_bytes(b"left by a killed run")
    assert download_cifar(library, root, SHA256)
    assert files_under(root) == WHOLE and os.listdir(root) == [FOLDER]
    assert not download_cifar(library, root, SHA256)
    assert server.requests == 1


def test_another_archive_is_refused_and_forgotten(server: Server, library: Library, root: Path) -> None:
    server.respond = lambda handler, content, attempt: send(handler, content[:-1] + b"?")
    assert "its hash differs" in download_fails(library, root)
    assert files_under(root) == {}


def test_files_of_the_user_are_not_overwritten(server: Server, library: Library, root: Path) -> None:
    (root / FOLDER).mkdir(parents=True)
    (root / FOLDER / "train").write_bytes(b"a subset")
    message = download_fails(library, root)
    assert f"{root / FOLDER / 'train'}: missing or not the published file" in message and "move" in message
    (root / FOLDER / "train").unlink()
    (root / FOLDER).rmdir()
    (root / FOLDER).write_text("a file")
    assert "missing" in download_fails(library, root)
    assert not server.requests


def test_a_root_that_cannot_hold_it_is_named(library: Library, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    message = download_fails(library, tmp_path / "file" / "root")
    assert str(tmp_path / "file") in message and "cannot be written" in message


def test_a_full_disk_is_not_a_broken_connection(
    server: Server, library: Library, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        server.requests += 1
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("torch.hub.download_url_to_file", full)
    message = download_fails(library, root)
    assert "No space left" in message and "cannot be written" in message and server.requests == 1


def test_the_command_fetches_and_says_so_and_then_that_it_is_there(
    library: Library, root: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(cifar.LIBRARIES, "cifar100", library)
    monkeypatch.setitem(cifar.SHA256, "cifar100", SHA256)
    assert main(["data", "cifar100", "-o", str(root)]) == 0
    shown = capsys.readouterr()
    assert f"{root / FOLDER}: 3 files, fetched" in shown.out and "Krizhevsky" in shown.err
    assert main(["data", "cifar100", "-o", str(root)]) == 0
    assert "already there" in capsys.readouterr().out
    monkeypatch.chdir(root.parent)
    assert main(["data", "cifar100"]) == 0  # into a folder of that name
    assert (root.parent / "cifar100" / FOLDER).is_dir()
