"""The download against a real HTTP server on this machine, with real sockets and really killed processes."""

import signal
import socket
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from pathlib import Path

import pytest
from made.local_server import Respond, files_under, send, serving, status, without_proxy
from made.waiting import PATIENCE_S, wait_for
from refusals import refusal

from steadyseg.core.system import fetching
from steadyseg.core.system.fetching import PARTS, blob_sha1
from steadyseg.core.system.files import locked_folder
from steadyseg.seg.data.camvid_download import MANIFEST, download_camvid, read_manifest
from steadyseg.seg.data.label_folder import open_split

PROJECT = Path(__file__).parents[2]
CONTENT = {
    f"{folder}/{index:03}.png": f"{folder} {index} ".encode() * 5000
    for folder in ("train", "trainannot", "val", "valannot")
    for index in range(4)
} | {"train.txt": b"/SegNet/CamVid/train/000.png /SegNet/CamVid/trainannot/000.png\n", "val.txt": b""}
VICTIM = "train/002.png"


@dataclass
class Server:
    """What the handler thread and the test share."""

    content: dict[str, bytes]
    respond: dict[str, Respond] = field(default_factory=dict)
    requests: Counter[str] = field(default_factory=Counter)
    lock: threading.Lock = field(default_factory=threading.Lock)
    closing: threading.Event = field(default_factory=threading.Event)
    url: str = ""

    def answer(self, handler: BaseHTTPRequestHandler) -> None:
        path = handler.path.removeprefix("/base/CamVid/")
        with self.lock:
            self.requests[path] += 1
            attempt = self.requests[path]
        if path not in self.content:
            return handler.send_error(404)
        self.respond.get(path, self.respond.get("*", send))(handler, self.content[path], attempt)


def corrupt(handler: BaseHTTPRequestHandler, content: bytes, attempt: int) -> None:
    send(handler, content[:-1] + b"?")


def first_two_tries(fault: Respond) -> Respond:
    return lambda handler, content, attempt: (fault if attempt <= 2 else send)(handler, content, attempt)


def hang_up(handler: BaseHTTPRequestHandler, content: bytes, attempt: int) -> None:
    handler.connection.shutdown(socket.SHUT_RDWR)


def stay_silent(server: Server) -> Respond:
    def respond(handler: BaseHTTPRequestHandler, content: bytes, attempt: int) -> None:
        server.closing.wait(2 * PATIENCE_S)

    return respond


@pytest.fixture(autouse=True)
def _quick_and_direct(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fetching, "PAUSES_S", (0.01, 0.02))
    without_proxy(monkeypatch)


@pytest.fixture
def server() -> Iterator[Server]:
    with serve(Server(dict(CONTENT))) as shared:
        yield shared


@contextmanager
def serve(shared: Server) -> Iterator[Server]:
    with serving(shared.answer, shared.closing) as address:
        shared.url = f"{address}/base"
        yield shared


@pytest.fixture
def manifest(tmp_path: Path) -> Path:
    return write_manifest(tmp_path / "manifest.txt", CONTENT)


def write_manifest(path: Path, content: dict[str, bytes]) -> Path:
    path.write_text("".join(f"{blob_sha1(data)} CamVid/{name}\n" for name, data in content.items()))
    return path


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "data" / "camvid"


def download_fails(root: Path, server_url: str, manifest: Path, connections: int = 8) -> str:
    return refusal(download_camvid, root, base_url=server_url, manifest=manifest, connections=connections)


def test_everything_arrives_in_the_layout_that_open_split_reads(server: Server, manifest: Path, root: Path) -> None:
    assert download_camvid(root, base_url=server.url, manifest=manifest) == (18, 0)
    assert files_under(root) == CONTENT
    assert [example.name for example in open_split(root, "train").examples] == ["000", "001", "002", "003"]


def test_only_missing_and_wrong_files_are_fetched_again(server: Server, manifest: Path, root: Path) -> None:
    download_camvid(root, base_url=server.url, manifest=manifest)
    (root / "val/001.png").unlink()
    (root / VICTIM).write_bytes(CONTENT[VICTIM][:100])
    (root / "train/003.png").write_bytes(b"")
    server.requests.clear()
    assert download_camvid(root, base_url=server.url, manifest=manifest) == (3, 15)
    assert server.requests == {"val/001.png": 1, VICTIM: 1, "train/003.png": 1}
    assert files_under(root) == CONTENT


def test_a_complete_copy_needs_no_network(server: Server, manifest: Path, root: Path) -> None:
    download_camvid(root, base_url=server.url, manifest=manifest)
    assert download_camvid(root, base_url=closed_port_url(), manifest=manifest) == (0, 18)


@pytest.mark.parametrize("fault", [corrupt, hang_up, status(429, Retry_After="0")], ids=["corrupt", "hung up", "429"])
def test_a_fault_that_passes_is_tried_again(server: Server, manifest: Path, root: Path, fault: Respond) -> None:
    server.respond[VICTIM] = first_two_tries(fault)
    assert download_camvid(root, base_url=server.url, manifest=manifest) == (18, 0)
    assert server.requests[VICTIM] == 3
    assert files_under(root) == CONTENT


@pytest.mark.parametrize(
    ("fault", "says"),
    [(corrupt, "its hash differs"), (hang_up, "broke off"), (status(503), "answered 503 Service Unavailable")],
    ids=["corrupt", "hung up", "503"],
)
def test_a_fault_that_stays_is_reported_after_three_tries_and_costs_only_its_file(server, manifest, root, fault, says):
    server.respond[VICTIM] = fault
    message = download_fails(root, server.url, manifest, connections=1)  # no file is on its way at the end
    assert str(root / VICTIM) in message
    assert f"{server.url}/CamVid/{VICTIM}" in message
    assert says in message
    assert "run the same command again: finished files are kept" in message
    assert server.requests[VICTIM] == 3
    left = files_under(root)
    assert VICTIM not in left
    assert left.items() <= CONTENT.items()
    server.respond.clear()
    server.requests.clear()
    assert download_camvid(root, base_url=server.url, manifest=manifest)[1] == len(left) >= 1
    assert set(server.requests) == CONTENT.keys() - left.keys() and files_under(root) == CONTENT


def test_the_pause_that_a_busy_server_asks_for_is_kept(server: Server, manifest: Path, root: Path) -> None:
    times = []

    def busy_once(handler: BaseHTTPRequestHandler, content: bytes, attempt: int) -> None:
        times.append(time.monotonic())
        (status(429, Retry_After="1") if attempt == 1 else send)(handler, content, attempt)

    server.respond[VICTIM] = busy_once
    download_camvid(root, base_url=server.url, manifest=manifest)
    assert times[1] - times[0] >= 1.0


def test_a_server_that_refuses_is_reported_with_the_reason(manifest: Path, root: Path) -> None:
    message = download_fails(root, closed_port_url(), manifest)
    assert "cannot be reached" in message
    assert "refused" in message


def test_a_silent_server_is_given_up(server, manifest, root, monkeypatch):
    monkeypatch.setattr(fetching, "SILENCE_TIMEOUT_S", 0.1)
    server.respond[VICTIM] = stay_silent(server)
    assert "timed out" in download_fails(root, server.url, manifest)


def drip(server: Server, bytes_at_once: int, pause_s: float) -> Respond:
    def respond(handler: BaseHTTPRequestHandler, content: bytes, attempt: int) -> None:
        send(handler, b"", length=len(content))
        for start in range(0, len(content), bytes_at_once):
            if server.closing.wait(pause_s):
                return
            handler.wfile.write(content[start : start + bytes_at_once])

    return respond


def closed_port_url() -> str:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return f"http://127.0.0.1:{probe.getsockname()[1]}"


def test_a_root_that_is_a_file_is_refused_before_any_request(server: Server, manifest: Path, root: Path) -> None:
    root.parent.mkdir()
    root.write_text("not a folder")
    assert "cannot be read or written" in download_fails(root, server.url, manifest)
    assert not server.requests


def test_a_folder_in_the_place_of_a_file_is_reported(server: Server, manifest: Path, root: Path) -> None:
    (root / VICTIM).mkdir(parents=True)
    assert f"{root / VICTIM}: cannot be read or written" in download_fails(root, server.url, manifest)


def test_a_second_download_is_refused_and_leaves_the_parts_of_the_first(server, manifest, root):
    (root / PARTS).mkdir(parents=True)
    with locked_folder(root):
        assert "another download is at work" in download_fails(root, server.url, manifest)
    assert not server.requests and (root / PARTS).is_dir()


RUN = """
import signal, sys
from pathlib import Path
from steadyseg.seg.data.camvid_download import download_camvid
root, url, manifest = sys.argv[1:]
signal.signal(signal.SIGINT, signal.default_int_handler)  # background jobs inherit it ignored
"""
DOWNLOAD = "download_camvid(Path(root), base_url=url, manifest=Path(manifest), connections=2)\n"


def start(root: Path, server: Server, manifest: Path, preparation: str = "") -> "subprocess.Popen[bytes]":
    command = [sys.executable, "-c", RUN + preparation + DOWNLOAD, str(root), server.url, str(manifest)]
    return subprocess.Popen(command, cwd=PROJECT, stderr=subprocess.PIPE)


@pytest.mark.slow
def test_a_run_killed_while_the_server_is_slow_is_resumed(server: Server, manifest: Path, root: Path) -> None:
    server.respond["*"] = drip(server, bytes_at_once=20_000, pause_s=0.01)
    with start(root, server, manifest) as process:
        wait_for(lambda: sum(PARTS not in path.parts for path in root.rglob("*.*")) >= 3)
        process.kill()
        assert process.wait(PATIENCE_S) == -signal.SIGKILL
    before = {name: data for name, data in files_under(root).items() if not name.startswith(PARTS)}
    assert 3 <= len(before) < len(CONTENT)
    assert before.items() <= CONTENT.items()
    server.respond.clear()
    assert download_camvid(root, base_url=server.url, manifest=manifest)[1] == len(before)
    assert files_under(root) == CONTENT


def test_leftovers_are_cleared_and_files_of_the_user_survive(server: Server, manifest: Path, root: Path) -> None:
    for folder in (PARTS, "train"):
        (root / folder).mkdir(parents=True)
    (root / PARTS / "train-000.png").write_bytes(b"left by a killed run")
    others = {"train/000.png.partial": b"mine", "train/extra.png": b"mine"}
    for name, data in others.items():
        (root / name).write_bytes(data)
    download_camvid(root, base_url=server.url, manifest=manifest)
    assert files_under(root) == CONTENT | others


@pytest.mark.slow
def test_ctrl_c_ends_the_run_at_once_though_the_server_is_silent(server: Server, manifest: Path, root: Path) -> None:
    server.respond["*"] = stay_silent(server)
    patient = f"from steadyseg.core.system import fetching\nfetching.SILENCE_TIMEOUT_S = {2 * PATIENCE_S}\n"
    with start(root, server, manifest, patient) as process:
        wait_for(lambda: sum(server.requests.values()) == 2)
        process.send_signal(signal.SIGINT)
        try:
            _, stderr = process.communicate(timeout=PATIENCE_S)  # so it does not wait for the server
        finally:
            process.kill()
    assert process.returncode != 0
    assert b"KeyboardInterrupt" in stderr


def test_the_pretrained_manifest_is_the_whole_of_camvid() -> None:
    paths = read_manifest(MANIFEST).keys()
    assert len(paths) == 1405
    for split, size in {"train": 367, "val": 101, "test": 233}.items():
        images = {path.removeprefix(f"{split}/") for path in paths if path.startswith(f"{split}/")}
        labels = {path.removeprefix(f"{split}annot/") for path in paths if path.startswith(f"{split}annot/")}
        assert len(images) == size
        assert images == labels
        assert f"{split}.txt" in paths


def test_real_files_pass_the_pretrained_manifest_on_their_way(data_dir: Path, tmp_path: Path, root: Path) -> None:
    lines = MANIFEST.read_text().splitlines()
    sample = [line for line in lines if "/train" in line or "/val" in line][::23]
    paths = [line.split(" CamVid/")[1] for line in sample]
    assert len(paths) >= 40
    real = {path: (data_dir / "camvid" / path).read_bytes() for path in paths}
    manifest = tmp_path / "sample.txt"
    manifest.write_text("\n".join(sample) + "\n")
    with serve(Server(real)) as server:
        assert download_camvid(root, base_url=server.url, manifest=manifest) == (len(real), 0)
    assert files_under(root) == real
