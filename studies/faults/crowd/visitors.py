"""The visitors of the crowd: cameras and files that wait for their answers, and four that mean harm."""

import json
import socket
import struct
import threading
import time
import uuid
from collections import Counter
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import numpy as np

from steadyseg.app.page.parts.pictures import jpeg
from steadyseg.studies.faults.page_soak.visitors import dependency, run_file_job

Counts = Counter[str]
TIMEOUT_S = 60.0
UPLOAD_EVERY_S, JOB_EVERY = 20.0, 6
"""Pause between the uploads of one visitor with a file, who segments every JOB_EVERY-th of them."""
PACE_S = 0.1
"""Pause between two requests of a hostile visitor: what is tried is what the page keeps, not a flood."""


class LiveVisitor:
    """A camera: the next picture goes out when the answer to the one before is there."""

    def __init__(self, address: str, pictures: list[bytes], rate_hz: float, model: str) -> None:
        self._address, self._pictures, self._pause_s = address, pictures, 1 / rate_hz
        self._key, self._model = uuid.uuid4().hex, model
        self.ages_s: list[float] = []
        self.counts = Counts()

    @property
    def answered(self) -> bool:
        return bool(self.ages_s)

    def stay(self, ended: threading.Event) -> None:
        with httpx.Client(base_url=self._address, timeout=TIMEOUT_S) as client:
            while not ended.is_set():
                sent_s = time.monotonic()
                self._send(client, len(self.ages_s), sent_s)
                ended.wait(max(0.0, self._pause_s - (time.monotonic() - sent_s)))
            client.post(f"/live/{self._key}/end", content=b"")

    def _send(self, client: httpx.Client, number: int, sent_s: float) -> None:
        text = json.dumps({"model": self._model, "mode": "vq-dnn", "captured_ms": sent_s * 1e3}).encode()
        picture = self._pictures[number % len(self._pictures)]
        try:
            status = client.post(
                f"/live/{self._key}", content=struct.pack("<I", len(text)) + text + picture
            ).status_code
        except httpx.TransportError:  # the server closes a connection after 5 s without a request, as it may
            self.counts["connected anew"] += 1
            return
        if status == 200:
            # The first picture waits for its network: it is counted, and its age is not.
            self.ages_s.append(time.monotonic() - sent_s if self.counts["answered"] else 0.0)
            self.counts["answered"] += 1
        else:
            self.counts["replaced" if status == 204 else f"status {status}"] += 1


class FileVisitor:
    """Uploads the same video again and again, and now and then segments it."""

    def __init__(self, address: str, video: Path, number: int) -> None:
        self._address, self._video, self._number = address, video, number
        self.uploads_s: list[float] = []
        self.counts = Counts()

    @property
    def answered(self) -> bool:
        return bool(self.uploads_s)

    def stay(self, ended: threading.Event) -> None:
        ended.wait(self._number * UPLOAD_EVERY_S / 12)
        while not ended.is_set():
            sent_s = time.monotonic()
            if len(self.uploads_s) % JOB_EVERY == self._number % JOB_EVERY and self.uploads_s:
                self.counts[f"job {run_file_job(self._address, self._video, stop=False)}"] += 1
            with httpx.Client(base_url=self._address, timeout=TIMEOUT_S) as client:
                began_s = time.monotonic()
                files = {"files": (self._video.name, self._video.read_bytes())}
                status = client.post("/gradio_api/upload", files=files).status_code
                self.uploads_s.append(time.monotonic() - began_s)
            self.counts["uploaded" if status == 200 else f"status {status}"] += 1
            ended.wait(max(0.0, UPLOAD_EVERY_S - (time.monotonic() - sent_s)))


def make_up_sessions(address: str, ended: threading.Event, counts: Counts) -> None:
    """Jobs of sessions that no page belongs to, with as much text as is taken; nobody listens to them."""
    with httpx.Client(base_url=address, timeout=TIMEOUT_S) as client:
        start = dependency(client.get("/config").json(), "start")
        while not ended.wait(PACE_S):
            record = {"data": ["x" * 31_000], "fn_index": start["id"], "session_hash": uuid.uuid4().hex}
            count(counts, partial(client.post, "/gradio_api/queue/join", json=record))


def fill_the_disk(address: str, ended: threading.Event, counts: Counts) -> None:
    """Files as large as are taken, each other than the last; every second one is broken off half way."""
    noise = np.random.default_rng(0)
    with httpx.Client(base_url=address, timeout=TIMEOUT_S) as client:
        while not ended.wait(PACE_S):
            content = noise.bytes(19_000_000)
            count(counts, partial(client.post, "/gradio_api/upload", files={"files": ("a.mp4", content)}))
            break_off(address, content[:9_000_000], counts)


def break_off(address: str, content: bytes, counts: Counts) -> None:
    """An upload that announces 19 MB, brings fewer, and is gone."""
    place = urlsplit(address)
    head = f"POST /gradio_api/upload HTTP/1.1\r\nHost: {place.netloc}\r\nContent-Length: 19000000\r\n"
    head += "Content-Type: multipart/form-data; boundary=b\r\n\r\n--b\r\n"
    head += 'Content-Disposition: form-data; name="files"; filename="b.mp4"\r\n\r\n'
    try:
        with socket.create_connection((place.hostname, place.port), TIMEOUT_S) as connection:
            connection.sendall(head.encode() + content)
        counts["broken off"] += 1
    except OSError:  # refused before all of it was sent
        counts["broken off by the page"] += 1


def take_live_places(address: str, ended: threading.Event, counts: Counts) -> None:
    """A new live stream with every picture, each of noise and as large as is taken; none says that it ends."""
    noise = np.random.default_rng(0).integers(0, 256, (600, 800, 3), np.uint8)
    text = json.dumps({"model": "camvid-unet-s", "mode": "vq-bnn", "samples": 50, "captured_ms": 1.0}).encode()
    body = struct.pack("<I", len(text)) + text + jpeg(noise)
    with httpx.Client(base_url=address, timeout=TIMEOUT_S) as client:
        while not ended.wait(PACE_S):
            count(counts, lambda: client.post(f"/live/{uuid.uuid4().hex}", content=body))


def hold_connections(address: str, ended: threading.Event, counts: Counts) -> None:
    """Thirty connections that bring a byte of their request now and then, and streams of messages that nobody reads."""
    place = urlsplit(address)
    head = f"GET /gradio_api/queue/data?session_hash={{}} HTTP/1.1\r\nHost: {place.netloc}\r\n"
    open_now: list[socket.socket] = []
    while not ended.wait(PACE_S):
        try:
            if len(open_now) < 30:
                open_now.append(socket.create_connection((place.hostname, place.port), TIMEOUT_S))
                end = "\r\n" if len(open_now) % 2 else ""
                open_now[-1].sendall((head.format(uuid.uuid4().hex) + end).encode())
                counts["opened"] += 1
            else:
                open_now[0].sendall(b"x")
                open_now.append(open_now.pop(0))
        except OSError:
            counts["closed by the page"] += 1
            open_now.pop(0 if len(open_now) == 30 else -1).close()
    for connection in open_now:
        connection.close()


def count(counts: Counts, ask: Callable[[], httpx.Response]) -> None:
    try:
        counts[f"status {ask().status_code}"] += 1
    except httpx.TransportError as error:
        counts[type(error).__name__] += 1


HOSTILE: Mapping[str, Callable[[str, threading.Event, Counts], None]] = {
    "made-up sessions": make_up_sessions,
    "full disk": fill_the_disk,
    "live places": take_live_places,
    "held connections": hold_connections,
}
"""The hostile visitors by name."""
