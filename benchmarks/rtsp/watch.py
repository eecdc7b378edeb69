"""The product as a process of its own, reading the stream through all faults: its memory, its frames, its report."""

import itertools
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import av
from rich.console import Console

from benchmarks.rtsp.proxy import Proxy
from benchmarks.study import origin
from core.errors import InputError

SYSTEM_PYTHON = "/usr/bin/python3"
ROOT = Path(__file__).parents[2]
MODEL = "street-tiny"
GAP_S = 1.0
"""Between two frames of the recording: more is an outage. The stream has 25 frames a second."""


@dataclass(frozen=True)
class Fault:
    """Something that happens to the stream."""

    at: float
    """Share of the whole time after which it begins."""
    kind: str
    seconds: float = 0.0
    """How long it lasts, whatever the whole time is."""


FAULTS = (
    *(Fault(at, "server killed", down) for at, down in ((0.05, 2), (0.13, 2), (0.21, 2), (0.29, 10), (0.34, 40))),
    Fault(0.50, "stalled", 30),
    *(Fault(at, "connections cut") for at in (0.60, 0.64, 0.68, 0.72, 0.76)),
    Fault(0.82, "size changed"), Fault(0.88, "size changed"),
    Fault(0.93, "server killed, another size after it", 2),
)  # fmt: skip


class Server:
    """benchmarks/rtsp/server.py as a process."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.start()

    def start(self) -> None:
        """Returns when it listens."""
        command = [SYSTEM_PYTHON, str(Path(__file__).with_name("server.py")), str(self.port)]
        environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
        self.process = subprocess.Popen(
            command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        assert self.process.stdout is not None and self.process.stderr is not None
        if self.process.stdout.readline() != "listening\n":
            raise InputError(f"no RTSP server: {self.process.stderr.read().strip().splitlines()[-1:]}; see server.py")

    def change_size(self) -> None:
        self.process.send_signal(signal.SIGUSR1)

    def kill(self) -> None:
        self.process.kill()
        self.process.communicate()


@contextmanager
def served() -> Iterator[tuple[Server, Proxy]]:
    """A server on a free port, and the proxy before it."""
    with Proxy(free_port()) as proxy:
        server = Server(proxy.target)
        try:
            yield server, proxy
        finally:
            server.kill()


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as one:
        return int(one.getsockname()[1])


def inflict(server: Server, proxy: Proxy, seconds: float, tell: Console) -> None:
    """All faults in their time; returns after the last one is over."""
    began_s = time.monotonic()
    for fault in FAULTS:
        time.sleep(max(0.0, began_s + fault.at * seconds - time.monotonic()))
        tell.print(f"{time.monotonic() - began_s:5.0f} s: {fault.kind} {fault.seconds or ''}")
        if fault.kind.startswith("server killed"):
            server.kill()
            time.sleep(fault.seconds)
            server.start()
            if "size" in fault.kind:
                server.change_size()
        elif fault.kind == "stalled":
            proxy.stall()
            time.sleep(fault.seconds)
            proxy.flow()
        elif fault.kind == "connections cut":
            proxy.cut()
        else:
            server.change_size()
    time.sleep(max(0.0, began_s + seconds - time.monotonic()))


def watch_video(folder: Path, seconds: float, tell: Console) -> dict[str, Any]:
    """What came of it, and how much memory the process had, second by second."""
    output, report = folder / "out.mkv", folder / "report.json"
    with served() as (server, proxy):
        address = f"rtsp://me:secret@127.0.0.1:{proxy.port}/street"
        command = [
            sys.executable, "-m", "app.cli", "video", address, "-o", str(output), "--report", str(report), "--model", MODEL,
        ]  # fmt: skip
        with (folder / "stderr").open("w+") as errors:
            product = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=errors)
            try:
                wait_for_frames(folder, product)
                samples: list[dict[str, int]] = []
                sampler = threading.Thread(target=sample, args=(product, samples), daemon=True)
                sampler.start()
                inflict(server, proxy, seconds, tell)
                product.send_signal(signal.SIGTERM)
                code = product.wait(60)
            finally:
                product.kill()
            errors.seek(0)
            said = errors.read()
        if not report.exists():
            raise InputError(f"the product ended with code {code} and left no report: {said.strip().splitlines()[-3:]}")
        kept = json.loads(report.read_text())
    frames, gaps = outages(output)
    return {
        "command": f"steadyseg video rtsp://... -o out.mkv --report report.json --model {MODEL}", **origin(),
        "seconds": seconds, "faults": [asdict(fault) for fault in FAULTS], "exit_code": code,
        "tracebacks": said.count("Traceback"), "passwords_shown": said.count("secret") + report_text(kept).count("secret"),
        "frames": kept["frames"], "frames_in_the_video": frames, "losses": kept["losses"], "resets": kept["resets"],
        "outages": gaps, "connections": proxy.connections, "samples": samples,
    }  # fmt: skip


def report_text(record: dict[str, Any]) -> str:
    return json.dumps(record)


def wait_for_frames(folder: Path, product: "subprocess.Popen[bytes]", patience_s: float = 120) -> None:
    """Until the video's file grows: importing and compiling take some 20 s."""
    deadline = time.monotonic() + patience_s
    while not any(path.stat().st_size > 20_000 for path in folder.glob(".out.mkv.*")):
        if product.poll() is not None or time.monotonic() > deadline:
            raise InputError(f"no video is written: {(folder / 'stderr').read_text().strip().splitlines()[-3:]}")
        time.sleep(0.1)


def sample(product: "subprocess.Popen[bytes]", samples: list[dict[str, int]]) -> None:
    """Resident memory in kB, threads and open files of the process, once a second until it ends."""
    place = Path(f"/proc/{product.pid}")
    while product.poll() is None:
        try:
            words = dict(line.split(":", 1) for line in (place / "status").read_text().splitlines())
            files = len(list((place / "fd").iterdir()))
            samples.append({
                "rss_kb": int(words["VmRSS"].split()[0]), "threads": int(words["Threads"]), "files": files,
            })  # fmt: skip
        except (OSError, KeyError):
            return
        time.sleep(1)


def outages(video: Path) -> tuple[int, list[dict[str, float]]]:
    """(frames, where more than a second lies between two of them)."""
    with av.open(str(video)) as container:
        times = [float(frame.pts * frame.time_base) for frame in container.decode(video=0)]
    pairs = itertools.pairwise(times)
    return len(times), [{"at_s": round(a, 1), "seconds": round(b - a, 1)} for a, b in pairs if b - a > GAP_S]
