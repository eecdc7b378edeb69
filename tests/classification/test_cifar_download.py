"""The download of CIFAR against a real HTTP server on this machine, with real sockets and really killed processes."""

import hashlib
import io
import os
import re
import signal
import socket
import subprocess
import sys
import tarfile
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from http.server import BaseHTTPRequestHandler
from pathlib import Path

import numpy as np
import pytest
from made.local_server import Respond, files_under, serving, status, without_proxy
from made.waiting import PATIENCE_S, wait_for
from refusals import refusal

from steadyseg.app import data as data_command
from steadyseg.app.cli import main
from steadyseg.classification.data import cifar_download
from steadyseg.classification.data.cifar import CIFAR10, CIFAR100
from steadyseg.classification.data.cifar_download import ARCHIVES, Archive, download_cifar

PROJECT = Path(__file__).parents[2]
FILES = {"train": np.random.default_rng(0).bytes(400_000), "test": b"test " * 1000, "meta": b"meta"}
FOLDER = "cifar-made"


@dataclass
class Server:
    """What the handler thread and the test share."""

    content: bytes
    respond: Respond | None = None
    ranges: list[str | None] = field(default_factory=list)
    """The Range header of every request so far."""
    closing: threading.Event = field(default_factory=threading.Event)
    url: str = ""

    def answer(self, handler: BaseHTTPRequestHandler) -> None:
        self.ranges.append(handler.headers["Range"])
        (self.respond or send_range)(handler, self.content, len(self.ranges))


def send_range(handler: BaseHTTPRequestHandler, content: bytes, attempt: int = 1, most: int | None = None) -> None:
    """As a server that knows ranges answers, with at most `most` bytes before it hangs up."""
    asked = re.fullmatch(r"bytes=(\d+)-", handler.headers["Range"] or "")
    start = int(asked[1]) if asked else 0
    if start >= len(content):
        handler.send_response(416)
        handler.send_header("Content-Length", "0")
        handler.end_headers()
        return
    handler.send_response(206 if asked else 200)
    if asked:
        handler.send_header("Content-Range", f"bytes {start}-{len(content) - 1}/{len(content)}")
    handler.send_header("Content-Length", str(len(content) - start))
    handler.end_headers()
    handler.wfile.write(content[start:] if most is None else content[start : start + most])


def ignore_ranges(handler: BaseHTTPRequestHandler, content: bytes, attempt: int) -> None:
    handler.send_response(200)
    handler.send_header("Content-Length", str(len(content)))
    handler.end_headers()
    handler.wfile.write(content if attempt > 1 else content[:150_000])


def only(most: int, tries: int = 10**6) -> Respond:
    """Hangs up after so many bytes, the first `tries` times."""
    return lambda handler, content, attempt: send_range(handler, content, attempt, most if attempt <= tries else None)


@pytest.fixture(autouse=True)
def _quick_and_direct(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cifar_download, "BACKOFF_S", (0.01, 0.02))
    without_proxy(monkeypatch)


def packed(files: dict[str, bytes], prefix: str = f"{FOLDER}/") -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as tar:
        for name, content in files.items():
            member = tarfile.TarInfo(prefix + name)
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))
    return buffer.getvalue()


CONTENT = packed(FILES)


@pytest.fixture
def server() -> Iterator[Server]:
    shared = Server(CONTENT)

    with serving(shared.answer, shared.closing) as address:
        shared.url = f"{address}/files/made-python.tar.gz"
        yield shared


def archive_of(url: str, content: bytes = CONTENT, files: dict[str, bytes] = FILES) -> Archive:
    return Archive(
        url,
        hashlib.sha256(content).hexdigest(),
        len(content),
        FOLDER,
        {name: md5(data) for name, data in files.items()},
    )


def md5(content: bytes) -> str:
    return hashlib.md5(content).hexdigest()


@pytest.fixture
def archive(server: Server) -> Archive:
    return archive_of(server.url)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "data" / "cifar"


def part_of(root: Path) -> Path:
    return root / ".made-python.tar.gz.part"


WHOLE = {f"{FOLDER}/{name}": content for name, content in FILES.items()}


# what a good download does


def test_the_folder_is_there_afterwards_and_nothing_else(archive: Archive, root: Path) -> None:
    report = download_cifar(archive, root)
    assert files_under(root) == WHOLE
    assert report.folder == root / FOLDER and report.fetched_bytes == len(CONTENT)
    assert sorted(path.name for path in root.iterdir()) == [FOLDER]


def test_a_complete_copy_needs_no_network(archive: Archive, root: Path) -> None:
    download_cifar(archive, root)
    assert download_cifar(replace(archive, url="http://127.0.0.1:9/none"), root).fetched_bytes == 0


def test_progress_grows_to_the_whole(archive: Archive, root: Path) -> None:
    seen: list[tuple[int, int]] = []
    download_cifar(archive, root, on_progress=lambda there, total: seen.append((there, total)))
    assert seen == sorted(seen) and seen[-1] == (len(CONTENT), len(CONTENT))


# what goes wrong on the way


def test_a_broken_connection_goes_on_where_it_was(server: Server, archive: Archive, root: Path) -> None:
    server.respond = only(150_000, tries=2)
    report = download_cifar(archive, root)
    assert server.ranges == [None, "bytes=150000-", "bytes=300000-"]
    assert files_under(root) == WHOLE and report.fetched_bytes == len(CONTENT)


def test_another_run_goes_on_where_the_first_stopped(server: Server, archive: Archive, root: Path) -> None:
    server.respond = only(50_000)
    message = refusal(lambda: download_cifar(archive, root))
    assert server.url in message and f"broke off after 150000 of {len(CONTENT)} bytes" in message
    assert "goes on from 0.1 MB" in message or "goes on from 0.2 MB" in message
    assert files_under(root) == {part_of(root).name: CONTENT[:150_000]}
    server.respond = None
    report = download_cifar(archive, root)
    assert server.ranges[-1] == "bytes=150000-" and report.fetched_bytes == len(CONTENT) - 150_000
    assert files_under(root) == WHOLE


def test_a_server_without_ranges_is_taken_from_the_start(server: Server, archive: Archive, root: Path) -> None:
    server.respond = ignore_ranges
    assert download_cifar(archive, root).fetched_bytes == len(CONTENT) + 150_000
    assert files_under(root) == WHOLE


def test_a_part_of_something_else_is_thrown_away(server: Server, archive: Archive, root: Path) -> None:
    root.mkdir(parents=True)
    part_of(root).write_bytes(b"x" * 1000)
    download_cifar(archive, root)
    assert server.ranges == ["bytes=1000-", None] and files_under(root) == WHOLE


@pytest.mark.parametrize("length", [len(CONTENT), len(CONTENT) + 1])
def test_a_part_that_is_too_long_or_wrong_is_thrown_away(
    server: Server, archive: Archive, root: Path, length: int
) -> None:
    root.mkdir(parents=True)
    part_of(root).write_bytes(b"x" * length)
    download_cifar(archive, root)
    assert server.ranges == [None] and files_under(root) == WHOLE


def test_a_whole_part_of_a_run_that_was_killed_needs_no_network(server: Server, archive: Archive, root: Path) -> None:
    root.mkdir(parents=True)
    part_of(root).write_bytes(CONTENT)
    (root / f".{FOLDER}.abc.part" / FOLDER).mkdir(parents=True)
    (root / f".{FOLDER}.abc.part" / FOLDER / "train").write_bytes(b"half")
    assert download_cifar(archive, root).fetched_bytes == 0
    assert not server.ranges and files_under(root) == WHOLE
    assert sorted(path.name for path in root.iterdir()) == [FOLDER]


def test_a_server_that_has_less_than_is_there_is_asked_anew(server: Server, archive: Archive, root: Path) -> None:
    root.mkdir(parents=True)
    part_of(root).write_bytes(CONTENT[:-10])
    server.content = CONTENT[:-100]
    message = refusal(lambda: download_cifar(archive, root))
    assert "has less than" in message and server.ranges[:2] == [f"bytes={len(CONTENT) - 10}-", None]


@pytest.mark.parametrize(("code", "tries"), [(404, 1), (403, 1), (503, 3)])
def test_an_answer_without_the_archive_is_told(
    server: Server, archive: Archive, root: Path, code: int, tries: int
) -> None:
    server.respond = status(code)
    assert f"{server.url} answered {code}" in refusal(lambda: download_cifar(archive, root))
    assert len(server.ranges) == tries


def test_another_archive_of_the_same_length_is_refused_and_forgotten(
    server: Server, archive: Archive, root: Path
) -> None:
    server.content = CONTENT[:-1] + b"?"
    message = refusal(lambda: download_cifar(archive, root))
    assert archive.sha256 in message and len(server.ranges) == 1 and files_under(root) == {}


def test_a_longer_answer_is_cut(server: Server, archive: Archive, root: Path) -> None:
    server.content = CONTENT + b"x" * 10**6
    assert f"more than the {len(CONTENT)} bytes" in refusal(lambda: download_cifar(archive, root))
    assert part_of(root).stat().st_size <= len(CONTENT) and not (root / FOLDER).exists()


def test_no_network_is_one_line(root: Path) -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        closed = f"http://127.0.0.1:{probe.getsockname()[1]}/a.tar.gz"
    assert f"{closed} cannot be reached (Connection refused)" in refusal(
        lambda: download_cifar(archive_of(closed), root)
    )
    unknown = "http://no-such-host.invalid/a.tar.gz"
    message = refusal(lambda: download_cifar(archive_of(unknown), root))
    assert "cannot be reached" in message and "check the network" in message and files_under(root) == {}


def test_a_silent_server_is_given_up(
    server: Server, archive: Archive, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cifar_download, "SILENCE_TIMEOUT_S", 0.1)
    server.respond = lambda handler, content, attempt: server.closing.wait(PATIENCE_S)  # type: ignore[assignment, return-value]
    assert "timed out" in refusal(lambda: download_cifar(archive, root))


# what is refused before or after the network


def test_files_of_the_user_are_not_overwritten(server: Server, archive: Archive, root: Path) -> None:
    (root / FOLDER).mkdir(parents=True)
    (root / FOLDER / "train").write_bytes(b"a subset")
    message = refusal(lambda: download_cifar(archive, root))
    assert f"{root / FOLDER / 'train'}: not the published file" in message and "move" in message
    (root / FOLDER / "train").unlink()
    assert f"{root / FOLDER / 'train'}: missing" in refusal(lambda: download_cifar(archive, root))
    (root / FOLDER).rmdir()
    (root / FOLDER).write_text("a file")
    assert "missing" in refusal(lambda: download_cifar(archive, root))
    assert not server.ranges


def test_a_root_that_cannot_hold_it_is_named(archive: Archive, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    message = refusal(lambda: download_cifar(archive, tmp_path / "file" / "root"))
    assert str(tmp_path / "file") in message and "cannot be written" in message


def test_a_full_disk_is_not_a_broken_connection(server: Server, archive: Archive) -> None:
    full = Path("/dev/full")
    if not full.exists():
        pytest.skip("no /dev/full here")
    message = refusal(lambda: download_cifar(replace(archive, bytes=10**9), LinkedRoot(full)))
    assert "No space left" in message and "cannot be written" in message and len(server.ranges) == 1


class LinkedRoot(type(Path())):  # type: ignore[misc]
    """A root whose part file is another file."""

    def __new__(cls, target: Path) -> "LinkedRoot":
        made: LinkedRoot = super().__new__(cls, "/tmp")
        made.target = target
        return made

    def __truediv__(self, name: str) -> Path:
        return self.target if name.endswith(".part") else Path("/nonexistent") / name


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (packed(FILES, "../"), "outside"),
        (packed(FILES, f"/tmp/{FOLDER}/"), "missing"),
        (packed({"train": FILES["train"]}), "test: missing"),
        (packed(FILES | {"test": b"other"}), "not the published file"),
        (b"no archive at all", "cannot be unpacked"),
        (CONTENT[:-5000], "cannot be unpacked"),
    ],
    ids=["..", "absolute", "incomplete", "other", "no archive", "cut"],
)
def test_an_archive_with_other_things_in_it_leaves_nothing(
    server: Server, root: Path, content: bytes, says: str
) -> None:
    """Its sum is right here; from the real server that could only be a forgery of the sum."""
    server.content = content
    message = refusal(lambda: download_cifar(archive_of(server.url, content), root))
    assert says in message and str(part_of(root)) in message
    assert not (root / FOLDER).exists() and not (root.parent / "train").exists()
    assert sorted(path.name for path in root.iterdir()) == [part_of(root).name]


def test_a_run_killed_in_the_middle_is_resumed_and_none_joins_it(server: Server, archive: Archive, root: Path) -> None:
    def slow(handler: BaseHTTPRequestHandler, content: bytes, attempt: int) -> None:
        handler.send_response(200)
        handler.send_header("Content-Length", str(len(content)))
        handler.end_headers()
        for start in range(0, len(content), 20_000):
            if server.closing.wait(0.02):
                return
            handler.wfile.write(content[start : start + 20_000])

    server.respond = slow
    code = "import sys; from pathlib import Path; from steadyseg.classification.data.cifar_download import *; "
    code += f"download_cifar({archive!r}, "
    with subprocess.Popen([sys.executable, "-c", code + "Path(sys.argv[1]))", str(root)], cwd=PROJECT) as process:
        wait_for(lambda: part_of(root).is_file() and part_of(root).stat().st_size > 100_000)
        assert "another download is at work" in refusal(lambda: download_cifar(archive, root))
        process.send_signal(signal.SIGKILL)
    there = part_of(root).stat().st_size
    assert part_of(root).read_bytes() == CONTENT[:there] and there < len(CONTENT)
    server.respond = None
    assert download_cifar(archive, root).fetched_bytes == len(CONTENT) - there
    assert files_under(root) == WHOLE


# the command


def test_the_archives_are_the_ones_that_torchvision_knows() -> None:
    from torchvision import datasets

    for name, library, layout in (("cifar10", datasets.CIFAR10, CIFAR10), ("cifar100", datasets.CIFAR100, CIFAR100)):
        archive = ARCHIVES[name]
        assert archive.url == library.url and archive.folder == library.base_folder
        lists = [*library.train_list, *library.test_list, [library.meta["filename"], library.meta["md5"]]]
        assert archive.files == {file: md5 for file, md5 in lists}
        assert set(archive.files) == {layout.meta, *(file for files in layout.files.values() for file in files)}
        assert archive.folder == layout.folder and layout.name == name


def test_the_command_fetches_and_says_so_and_then_that_it_is_there(
    archive: Archive, root: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(data_command.cifar_download.ARCHIVES, "cifar100", archive)
    assert main(["data", "cifar100", "-o", str(root)]) == 0
    shown = capsys.readouterr()
    assert f"{root / FOLDER}: 3 files, 0.4 MB fetched" in shown.out and "Krizhevsky" in shown.err
    assert main(["data", "cifar100", "-o", str(root)]) == 0
    assert "already there" in capsys.readouterr().out
    monkeypatch.chdir(root.parent)
    assert main(["data", "cifar100"]) == 0  # into a folder of that name
    assert (root.parent / "cifar100" / FOLDER).is_dir()


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may write everywhere")
def test_a_read_only_root_is_reported(archive: Archive, root: Path) -> None:
    root.mkdir(parents=True)
    root.chmod(0o500)
    assert "cannot be written (Permission denied)" in refusal(lambda: download_cifar(archive, root))
