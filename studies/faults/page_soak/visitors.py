"""Visitors without a browser: they speak the page's own addresses, as its scripts do."""

import json
import struct
import threading
import time
import uuid
from fractions import Fraction
from pathlib import Path
from typing import Any

import av
import httpx

from steadyseg.app.page.parts.pictures import jpeg
from steadyseg.seg.street.drive import Street

TIMEOUT_S = 120


class LiveVisitor:
    """One live stream: a picture goes out when the answer to the one before is there."""

    def __init__(self, address: str, pictures: list[bytes], rate_hz: float) -> None:
        self._client = httpx.Client(base_url=address, timeout=TIMEOUT_S)
        self._key, self._pictures, self._pause_s = uuid.uuid4().hex, pictures, 1 / rate_hz
        self._sent = 0
        self.counts = {"answered": 0, "replaced": 0, "refused": 0, "connected_anew": 0}

    def stay(self, ended: threading.Event) -> None:
        """Sends pictures until the soak ends."""
        while not ended.wait(self._pause_s):
            self._send()
        self._leave()

    def show(self, count: int) -> None:
        """Sends a few pictures, then leaves."""
        for _ in range(count):
            self._send()
        self._leave()

    def _send(self) -> None:
        record = {"model": "camvid-realtime", "mode": "vq-dnn", "captured_ms": time.monotonic() * 1e3}
        text = json.dumps(record).encode()
        body = struct.pack("<I", len(text)) + text + self._pictures[self._sent % len(self._pictures)]
        self._sent += 1
        try:
            status = self._client.post(f"/live/{self._key}", content=body).status_code
        except httpx.TransportError:  # the server closes a connection after 5 s without a request, as it may
            self.counts["connected_anew"] += 1
            return
        self.counts[{200: "answered", 204: "replaced"}.get(status, "refused")] += 1

    def _leave(self) -> None:
        self._client.post(f"/live/{self._key}/end", content=b"")
        self._client.close()


def make_up_sessions(address: str, count: int = 50) -> int:
    """Sends events of that many sessions that no page belongs to, with as much text as is taken; returns the number
    that was answered."""
    with httpx.Client(base_url=address, timeout=TIMEOUT_S) as client:
        halt = dependency(client.get("/config").json(), "stop")
        sent = {"data": ["x" * 31_000], "fn_index": halt["id"]}
        asked = (sent | {"session_hash": uuid.uuid4().hex} for _ in range(count))
        return sum(client.post("/gradio_api/run/predict", json=one).status_code == 200 for one in asked)


def run_file_job(address: str, video: Path, stop: bool) -> str:
    """Uploads and segments a file as the tab File does: done, stopped, failed, or refused where the page is full."""
    session = uuid.uuid4().hex
    with httpx.Client(base_url=address, timeout=TIMEOUT_S) as client:
        config = client.get("/config").json()
        values = {part["id"]: part["props"].get("value") for part in config["components"]}
        start, halt = dependency(config, "start"), dependency(config, "stop")
        uploaded = client.post("/gradio_api/upload", files={"files": (video.name, video.read_bytes())})
        if uploaded.status_code != 200:
            return "refused"
        data = [values[number] for number in start["inputs"]]
        data[0] = {"path": uploaded.json()[0], "orig_name": video.name, "meta": {"_type": "gradio.FileData"}}
        asked = {"data": data, "fn_index": start["id"], "session_hash": session}
        if client.post("/gradio_api/queue/join", json=asked).status_code != 200:
            return "refused"
        with client.stream("GET", "/gradio_api/queue/data", params={"session_hash": session}) as stream:
            for line in stream.iter_lines():
                if stop and "process_generating" in line:
                    asked = {"data": [], "fn_index": halt["id"], "session_hash": session}
                    client.post("/gradio_api/run/predict", json=asked)
                if "process_completed" in line:
                    success = json.loads(line.removeprefix("data: ")).get("success")
                    return "failed" if not success else "stopped" if stop else "done"
    return "failed"


def dependency(config: dict[str, Any], element: str) -> dict[str, Any]:
    """The event of the button with that id."""
    button = next(part["id"] for part in config["components"] if part["props"].get("elem_id") == element)
    return next(one for one in config["dependencies"] if any(target[0] == button for target in one["targets"]))


def street_jpegs(count: int = 60) -> list[bytes]:
    """JPEGs of a drive, as a camera sends them."""
    return [jpeg(frame.image) for frame in Street(seed=7, height=360, width=480).frames(count)]


def street_video(path: Path, count: int = 150) -> Path:
    """An MP4 of six seconds."""
    with av.open(str(path), "w") as container:
        stream = container.add_stream("libx264", rate=Fraction(25))
        stream.width, stream.height, stream.pix_fmt = 480, 360, "yuv420p"
        for frame in Street(seed=9, height=360, width=480).frames(count):
            container.mux(stream.encode(av.VideoFrame.from_ndarray(frame.image)))
        container.mux(stream.encode())
    return path
