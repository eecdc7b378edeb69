"""The Ray engine by a real Ray: what it refuses, that nothing listens beyond loopback, and that a batch on it is a batch."""

import json
import os
import socket
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from refusals import refusal, steadyseg

ray = pytest.importorskip("ray")
from app.scale.ray_engine import RayEngine, check_address  # noqa: E402

pytestmark = pytest.mark.long


class Counter:
    """A worker that says where it is."""

    def where(self) -> tuple[int, str]:
        return os.getpid(), os.environ.get("RAY_USAGE_STATS_ENABLED", "")


@pytest.fixture(scope="module")
def embedded() -> Iterator[RayEngine]:
    began_s = time.monotonic()
    engine = RayEngine(Counter, 1)
    engine.grow(1)
    engine.call(0, "where")
    answers = []
    while not answers:
        answers = engine.wait(1.0)
    assert answers[0].value[0] != os.getpid()
    assert time.monotonic() - began_s < 15
    yield engine
    engine.close()


def listening() -> set[str]:
    """Addresses at which something of this user's listens, in hexadecimal as /proc has them, with the inode of the socket."""
    found = set()
    for table in ("tcp", "tcp6"):
        for line in Path(f"/proc/net/{table}").read_text().splitlines()[1:]:
            words = line.split()
            if words[3] == "0A":
                found.add(f"{words[1]} {words[9]}")
    return found


def test_nothing_of_it_listens_beyond_loopback(embedded: RayEngine) -> None:
    session = {
        path.name for path in Path("/proc").iterdir()
        if path.name.isdigit() and b"ray" in _words(path)
    }  # fmt: skip
    inodes = {os.readlink(link)[8:-1] for pid in session for link in _sockets(Path("/proc") / pid)}
    open_to_all = [
        one for one in listening()
        if one.split()[1] in inodes and not one.startswith(("0100007F:", "00000000000000000000000001000000:",
                                                            "0000000000000000FFFF00000100007F:"))
    ]  # fmt: skip
    assert not open_to_all


def _words(place: Path) -> bytes:
    try:
        return (place / "cmdline").read_bytes()
    except OSError:
        return b""


def _sockets(place: Path) -> list[Path]:
    try:
        return [link for link in (place / "fd").iterdir() if os.readlink(link).startswith("socket:")]
    except OSError:
        return []


def test_an_address_that_does_not_answer_is_refused_in_time() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        began_s = time.monotonic()
        assert f"--ray-address 127.0.0.1:{port}: " in refusal(check_address, f"127.0.0.1:{port}")
        assert time.monotonic() - began_s < 25
    assert "is `ray start --head` running there?" in refusal(check_address, f"127.0.0.1:{port}")


def test_a_batch_on_ray_is_a_batch_and_no_frame_is_an_object(model: str, tmp_path: Path) -> None:
    out, flags = tmp_path / "out", ["--model", model, "--executor", "torch", "--max-frames", "20"]
    done = steadyseg("batch", "street:1:20", "street:2:20", "-o", out, "--engine", "ray", *flags)
    assert done.returncode == 0, done.stdout + done.stderr
    assert json.loads((out / "summary.json").read_text())["frames"] == 40
