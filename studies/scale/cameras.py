"""Simulated cameras: motion JPEG over HTTP, as network cameras serve it, watched by `steadyseg cameras`.

The server is one process with a thread a camera; its cost is on the same cores, and counted in no figure but as load.
"""

import json
import signal
import socket
import subprocess
import tempfile
import threading
import time
import urllib.request
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from operator import attrgetter
from pathlib import Path
from typing import Any

import cv2
import numpy as np

from steadyseg.app.sources.open_source import open_source
from steadyseg.core.errors import CheckFailed
from steadyseg.studies.scale.run import busy_s, cores, resident_kb, start, workers_of
from steadyseg.studies.scale.throughput import MODEL

WIDTH, HEIGHT, LOOP = 320, 240, 50
"""Size of a camera's picture, and the number of pictures that it repeats."""


def pictures() -> list[bytes]:
    """JPEGs of the procedural street."""
    with open_source(f"street:11:{LOOP}") as source:
        small = (cv2.resize(frame.image, (WIDTH, HEIGHT), interpolation=cv2.INTER_AREA) for frame in source)
        return [cv2.imencode(".jpg", np.ascontiguousarray(image[:, :, ::-1]))[1].tobytes() for image in small]


class Cameras(ThreadingHTTPServer):
    """GET /NAME: a stream that never ends, at `fps`."""

    daemon_threads = True
    request_queue_size = 256

    def __init__(self, fps: float) -> None:
        images, stopped = pictures(), threading.Event()
        self.stopped = stopped

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                self.send_response(200)
                self.send_header("Content-Type", "multipart/x-mixed-replace; boundary=frame")
                self.end_headers()
                due_s, number = time.monotonic(), hash(self.path) % LOOP
                while not stopped.is_set():
                    image = images[number % LOOP]
                    head = f"--frame\r\nContent-Type: image/jpeg\r\nContent-Length: {len(image)}\r\n\r\n".encode()
                    try:
                        self.wfile.write(head + image + b"\r\n")
                    except OSError:
                        return
                    number, due_s = number + 1, due_s + 1 / fps
                    stopped.wait(max(0.0, due_s - time.monotonic()))

            def log_message(self, *_: object) -> None:
                return

        super().__init__(("127.0.0.1", 0), Handler)


@contextmanager
def served(fps: float) -> Iterator[str]:
    """The address of a server of cameras."""
    server = Cameras(fps)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.stopped.set()
        server.shutdown()
        thread.join()
        server.server_close()


@dataclass(frozen=True)
class Sample:
    """All cameras and workers at one moment."""

    at_s: float
    frames: int
    dropped: int
    with_frames: int
    """Cameras that have had one."""
    busy_s: float
    """Processor time of all workers, in seconds of a core."""
    memory_kb: int
    """Resident memory of all workers."""
    driver_kb: int
    """Resident memory of the command."""


def watch(count: int, fps: float, sample_fps: float, seconds: float, model: str = MODEL) -> dict[str, Any]:
    """Runs `steadyseg cameras` with so many cameras and returns the measurements."""
    with tempfile.TemporaryDirectory(prefix="steadyseg-") as folder, served(fps) as address:
        path, report, alarms = Path(folder) / "cameras.toml", Path(folder) / "r.json", Path(folder) / "alarms.jsonl"
        listed = "".join(f'[[camera]]\nname = "c{i:03}"\nsource = "{address}/c{i:03}"\n' for i in range(count))
        path.write_text(f'[options]\nmodel = "{model}"\n[defaults]\nfps = {fps}\nsample_fps = {sample_fps}\n{listed}')
        port, began_s = _free_port(), time.monotonic()
        words = ["--report", report, "--alarms", alarms, "--port", port]
        process, samples = start("cameras", path, *words), list[Sample]()
        threading.Thread(target=_follow, args=(process, port, samples), daemon=True).start()
        time.sleep(seconds)
        process.send_signal(signal.SIGINT)
        said, _ = process.communicate()
        if process.returncode != 130:
            raise CheckFailed(f"the cameras ended with code {process.returncode}: {said[-500:]}")
        record = json.loads(report.read_text())
        began = [json.loads(line) for line in alarms.read_text().splitlines()]
    return (
        summarise(record, began)
        | settled(samples, count, began_s)
        | {
            "cameras": count,
            "fps": fps,
            "sample_fps": sample_fps,
            "seconds": seconds,
            "cores": cores(),
            "model": model,
        }
    )


def _follow(process: "subprocess.Popen[str]", port: int, samples: list[Sample]) -> None:
    """Samples once a second, from the first figures to the end."""
    while process.poll() is None:
        with suppress(OSError), urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=5) as answer:
            samples.append(_sample(answer.read().decode(), process.pid))
        time.sleep(1)


def _sample(text: str, driver: int) -> Sample:
    workers = workers_of(driver)
    frames, dropped = (
        [int(line.split()[-1]) for line in text.splitlines() if line.startswith(f"steadyseg_camera_{name}_total{{")]
        for name in ("frames", "dropped")
    )
    with_frames = sum(number > 0 for number in frames)
    busy, memory = sum(map(busy_s, workers)), sum(resident_kb(pid) or 0 for pid in workers)
    return Sample(time.monotonic(), sum(frames), sum(dropped), with_frames, busy, memory, resident_kb(driver) or 0)


def memory_over_time(samples: list[Sample]) -> dict[str, list[float]]:
    """Resident MB of the workers and of the command: after a tenth of the time, in the middle, at the end, at most."""
    moments = [samples[len(samples) // 10], samples[len(samples) // 2], samples[-1]]
    return {
        name: [getattr(one, f"{name}_kb") / 1024 for one in (*moments, max(samples, key=attrgetter(f"{name}_kb")))]
        for name in ("memory", "driver")
    }


def settled(samples: list[Sample], count: int, began_s: float) -> dict[str, Any]:
    """From ten seconds after every camera had a frame: until then networks are compiled, and frames wait for that."""
    opened = next((one for one in samples if one.with_frames == count), samples[-1])
    first, last = next((one for one in samples if one.at_s > opened.at_s + 10), samples[-1]), samples[-1]
    frames, dropped = last.frames - first.frames, last.dropped - first.dropped
    return {
        "opening_s": opened.at_s - began_s,
        "settled_s": last.at_s - first.at_s,
        "settled_frames": frames,
        "settled_dropped": dropped,
        "settled_dropped_share": dropped / max(frames + dropped, 1),
        "worker_cores": (last.busy_s - first.busy_s) / max(last.at_s - first.at_s, 1e-9),
        "worker_mb": last.memory_kb / 1024,
        "resident_mb": memory_over_time(samples),
    }


def summarise(record: dict[str, Any], alarms: list[dict[str, Any]]) -> dict[str, Any]:
    """Figures over all cameras."""
    states = [one["state"] for one in record["cameras"]]
    frames, dropped = (sum(state[name] for state in states) for name in ("frames", "dropped"))
    ages = [state["age_s"] for state in states if state["age_s"] is not None]
    rates = [state["fps"] for state in states]
    return {
        "frames": frames,
        "dropped": dropped,
        "fps_lowest": min(rates),
        "fps_mean": sum(rates) / len(rates),
        "age_p50_s": float(np.median(ages)) if ages else None,
        "age_max_s": max(ages, default=None),
        "without_a_frame": sum(not state["frames"] for state in states),
        "restarts": sum(one["restarts"] for one in record["cameras"]),
        "step_ms": record["step_ms"],
        "workers": record["workers"],
        "alarms": dict(Counter(one["alarm"] for one in alarms if one["on"])),
    }


def max_that_hold(fps: float, seconds: float, most: int) -> list[dict[str, Any]]:
    """One camera, then twice as many each time until they do not hold; then one number between."""
    tried, count = [], 1
    while count <= most:
        tried.append(watch(count, fps, 0.0, seconds))
        if not holds(tried[-1]):
            if count > 2:
                tried.insert(-1, watch(3 * count // 4, fps, 0.0, seconds))
            break
        count *= 2
    return [{**one, "holds": holds(one)} for one in tried]


def holds(one: dict[str, Any]) -> bool:
    """Returns True if at most one frame in a hundred was dropped and every camera was read as fast as it sends: what is
    read too late waits in the network, where nobody counts it."""
    return bool(
        one["settled_frames"] > 0 and one["settled_dropped_share"] <= 0.01 and one["fps_lowest"] >= 0.97 * one["fps"]
    )


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as one:
        return int(one.getsockname()[1])
