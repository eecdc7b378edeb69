"""Requests to the page, damaged: sent as bytes to a page that runs in a process of its own."""

import atexit
import contextlib
import json
import os
import re
import shutil
import socket
import struct
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import httpx
from made.video import write_video
from made.waiting import PATIENCE_S

from fuzzing.mutate import damage_bytes, damage_json
from steadyseg.app.page.parts.pictures import jpeg
from steadyseg.core.errors import InputError
from steadyseg.street.drive import Street

KEY = "0123456789abcdef" * 2
BOUNDARY = "street"
SILENCE_S = 15
GUARDED = (400, 403, 404, 405, 411, 413, 421)
"""Statuses by which the page's guard, or the server before it, refuses."""


class Server:
    """The page as a process, whose log and memory are read from this one."""

    def __init__(self) -> None:
        self._folder = Path(tempfile.mkdtemp())
        self._log = self._folder / "log"
        command = [sys.executable, "-m", "steadyseg.app.cli", "demo", "street-tiny", "--port", "7896"]
        with self._log.open("wb") as log:
            self.process = subprocess.Popen(
                [*command, "--no-open-browser"],
                stdout=subprocess.PIPE,
                stderr=log,
                env={**os.environ, "TMPDIR": str(self._folder)},
            )
        assert self.process.stdout is not None
        found = re.search(rb"http://[^:]+:(\d+)", self.process.stdout.readline())
        if found is None:
            raise RuntimeError(self._log.read_text())
        self.port = int(found[1])
        atexit.register(self._end, os.getpid())

    def said(self) -> int:
        """Number of bytes in its log."""
        return self._log.stat().st_size

    def complaint(self, since: int) -> str:
        """The traceback that it logged from there on, if there is one."""
        text = self._log.read_bytes()[since:].decode(errors="replace")
        return text if "Traceback" in text else ""

    def _end(self, starter: int) -> None:
        if os.getpid() == starter:  # and not a child that was forked to send one request
            self.process.kill()
            shutil.rmtree(self._folder, ignore_errors=True)


SERVERS = list[Server]()


def server() -> Server:
    """The one server for all requests."""
    if not SERVERS:
        SERVERS.append(Server())
    return SERVERS[0]


def dependency(config: dict[str, Any], element: str) -> dict[str, Any]:
    """The event of the button with that id."""
    button = next(part["id"] for part in config["components"] if part["props"].get("elem_id") == element)
    return next(one for one in config["dependencies"] if any(target[0] == button for target in one["targets"]))


def request_seeds(folder: Path) -> list[Path]:
    """Requests of the page's scripts, as bytes: a live frame, its end, an upload, a job, a run, the page."""
    running = server()
    address = f"http://127.0.0.1:{running.port}"
    with httpx.Client(base_url=address, timeout=PATIENCE_S) as client:
        config = client.get("/config").json()
        street = Street(seed=9, height=360, width=480)
        video = write_video(folder / "drive.mp4", [frame.image for frame in street.frames(10)])
        stored = client.post("/gradio_api/upload", files={"files": ("drive.mp4", video.read_bytes())}).json()[0]
    values = {part["id"]: part["props"].get("value") for part in config["components"]}
    start, halt = dependency(config, "start"), dependency(config, "stop")
    data = [values[number] for number in start["inputs"]]
    data[0] = {"path": stored, "orig_name": "drive.mp4", "meta": {"_type": "gradio.FileData"}}
    settings = json.dumps({"model": "street-tiny", "mode": "vq-dnn"}).encode()
    part = f'--{BOUNDARY}\r\nContent-Disposition: form-data; name="files"; filename="drive.mp4"\r\n\r\n'.encode()
    job = {"data": data, "fn_index": start["id"], "session_hash": "fuzzing"}
    bodies: dict[str, tuple[str, bytes]] = {
        "live": (
            f"/live/{KEY}",
            struct.pack("<Id", len(settings), 1.0) + settings + jpeg(next(iter(street.frames(1))).image),
        ),
        "end": (f"/live/{KEY}/end", b""),
        "upload": ("/gradio_api/upload", part + video.read_bytes() + f"\r\n--{BOUNDARY}--\r\n".encode()),
        "job": ("/gradio_api/queue/join", json.dumps(job).encode()),
        "run": ("/gradio_api/run/predict", json.dumps({**job, "data": [], "fn_index": halt["id"]}).encode()),
        "page": ("/", b""),
    }
    video.unlink()
    paths = []
    for name, (target, body) in bodies.items():
        kind = f"multipart/form-data; boundary={BOUNDARY}" if name == "upload" else "application/json"
        method = "GET" if name == "page" else "POST"
        head = f"{method} {target} HTTP/1.1\r\nHost: 127.0.0.1:{running.port}\r\nContent-Type: {kind}\r\n"
        paths.append(folder / f"{name}.http")
        paths[-1].write_bytes(with_length(head.encode(), body))
    return paths


def with_length(head: bytes, body: bytes) -> bytes:
    return head + f"Content-Length: {len(body)}\r\nConnection: close\r\n\r\n".encode() + body


def damage_request(data: bytes, dice: Random) -> bytes:
    """Damages the body of a request in most cases (as JSON, as a picture or as bytes), otherwise its head."""
    head, _, body = data.partition(b"\r\n\r\n")
    if not body or dice.random() < 0.1:
        return damage_bytes(head, dice) + b"\r\n\r\n" + body
    if body.startswith(b"{"):
        body = json.dumps(damage_json(json.loads(body), dice)).encode()
    elif b"/live/" in head and dice.random() < 0.6:
        length, captured_ms = struct.unpack_from("<Id", body)
        text = json.dumps(damage_json(json.loads(body[12 : 12 + length]), dice)).encode()
        body = struct.pack("<Id", len(text), captured_ms) + text + body[12 + length :]
    else:
        body = damage_bytes(body, dice)
    lines = [line for line in head.split(b"\r\n") if not line.startswith((b"Content-Length", b"Connection"))]
    return with_length(b"\r\n".join(lines) + b"\r\n", body)


def send_request(path: Path) -> Iterator[str]:
    """Sends a request like a browser and follows a file job to its end. Raises RuntimeError if the page failed."""
    running, data = server(), path.read_bytes()
    since = running.said()
    status, answer = exchange(running.port, data)
    if status not in GUARDED:
        yield "passed the guard"
    if status == 200:
        yield "answered"
        if b"event_id" in answer and (session := session_of(data)):
            last = exchange(
                running.port,
                f"GET /gradio_api/queue/data?session_hash={session} HTTP/1.1\r\n"
                f"Host: 127.0.0.1:{running.port}\r\nConnection: close\r\n\r\n".encode(),
            )[1]
            if b'"success":true' in last.replace(b" ", b""):
                yield "job done"
            answer += last
    if complaint := running.complaint(since) or (b"something failed" in answer and "something failed"):
        raise RuntimeError(complaint[-200:])
    if status >= 400:
        raise InputError(f"status {status}")


def exchange(port: int, data: bytes) -> tuple[int, bytes]:
    """(status, the answer as bytes); 400 where the server closed without a word.

    A request that announces more than it brings times out after SILENCE_S, as a browser that is closed would.
    """
    parts = bytearray()
    with socket.create_connection(("127.0.0.1", port), SILENCE_S) as connection, contextlib.suppress(ConnectionError):
        connection.sendall(data)  # refused before the body was read: a connection error
        while part := receive(connection):
            parts += part
    found = re.match(rb"HTTP/1\.[01] (\d{3})", parts)
    return int(found[1]) if found else 400, bytes(parts)


def receive(connection: socket.socket) -> bytes:
    try:
        return connection.recv(1 << 16)
    except TimeoutError:
        connection.shutdown(socket.SHUT_WR)
        return connection.recv(1 << 16)


def session_of(data: bytes) -> str | None:
    record: Any = json.loads(data.partition(b"\r\n\r\n")[2])
    session = record.get("session_hash")
    return session if isinstance(session, str) and re.fullmatch(r"\w{1,40}", session) else None
