"""The product as a process of its own, reading the stream through all faults: its memory, its frames, its report."""

import itertools
import json
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

import av
from rich.console import Console

from steadyseg.core.errors import InputError
from steadyseg.studies.faults.rtsp.faults import FAULTS, inflict, served
from steadyseg.studies.harness.study import origin

ROOT = Path(__file__).resolve().parents[3]
MODEL = "street-tiny"
GAP_S = 1.0
"""Seconds between two frames of the recording above which there was an outage; the stream has 25 frames a second."""
START_S = 20.0
"""Seconds until the first fault; the network is compiled in them."""


def watch_video(folder: Path, seconds: float, tell: Console) -> dict[str, Any]:
    """Runs `steadyseg video` on the stream and returns the measurements."""
    output, report = folder / "out.mkv", folder / "report.json"
    with served() as (server, proxy):
        flags = ["-o", str(output), "--report", str(report), "--model", MODEL]
        with running(folder, "video", address_of(proxy.port), *flags) as product:
            wait_for_frames(folder, product)
            samples = sampled(product)
            inflict(server, proxy, seconds, tell)
            code, said = ended(product, folder)
    if not report.exists():
        raise InputError(f"the product ended with code {code} and left no report: {said.strip().splitlines()[-3:]}")
    kept = json.loads(report.read_text())
    frames, gaps = outages(output)
    return {
        "command": f"steadyseg video rtsp://... -o out.mkv --report report.json --model {MODEL}",
        **origin(),
        "seconds": seconds,
        "faults": [asdict(fault) for fault in FAULTS],
        "exit_code": code,
        "tracebacks": said.count("Traceback"),
        "passwords_shown": (said + report.read_text()).count("secret"),
        "frames": kept["frames"],
        "frames_in_the_video": frames,
        "losses": kept["losses"],
        "resets": kept["resets"],
        "outages": gaps,
        "connections": proxy.connections,
        "samples": samples,
    }


def address_of(port: int) -> str:
    return f"rtsp://me:secret@127.0.0.1:{port}/street"


@contextmanager
def running(folder: Path, *arguments: str, **options: Any) -> "Iterator[subprocess.Popen[str]]":
    """The command as a process, which is gone afterwards; what it says on stderr goes to a file of the folder."""
    command = [sys.executable, "-m", "steadyseg.app.cli", *arguments]
    with (folder / "stderr").open("w") as errors:
        product = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=errors, text=True, **options)
        try:
            yield product
        finally:
            product.kill()


def ended(product: "subprocess.Popen[str]", folder: Path) -> tuple[int, str]:
    """Sends SIGTERM; returns the exit code and all output."""
    product.send_signal(signal.SIGTERM)
    said, _ = product.communicate(timeout=60)
    return product.returncode, said + (folder / "stderr").read_text()


def wait_for_frames(folder: Path, product: "subprocess.Popen[str]", patience_s: float = 120) -> None:
    """Waits until the video's file grows: importing and compiling take some 20 s."""
    deadline = time.monotonic() + patience_s
    while not any(path.stat().st_size > 20_000 for path in folder.glob(".out.mkv.*")):
        if product.poll() is not None or time.monotonic() > deadline:
            raise InputError(f"no video is written: {(folder / 'stderr').read_text().strip().splitlines()[-3:]}")
        time.sleep(0.1)


def sampled(product: "subprocess.Popen[str]") -> list[dict[str, int]]:
    """A list that grows until the process ends: its resident memory in kB, threads and open files, once a second."""
    samples: list[dict[str, int]] = []
    place = Path(f"/proc/{product.pid}")

    def watch() -> None:
        while True:
            try:
                words = dict(line.split(":", 1) for line in (place / "status").read_text().splitlines())
                rss_kb, files = int(words["VmRSS"].split()[0]), len(list((place / "fd").iterdir()))
            except (OSError, KeyError):  # it has ended
                return
            samples.append({"rss_kb": rss_kb, "threads": int(words["Threads"]), "files": files})
            time.sleep(1)

    threading.Thread(target=watch, daemon=True).start()
    return samples


def outages(video: Path) -> tuple[int, list[dict[str, float]]]:
    """Returns the number of frames, and the gaps of more than a second between two of them."""
    with av.open(str(video)) as container:
        times = [frame.time or 0.0 for frame in container.decode(video=0)]
    pairs = itertools.pairwise(times)
    return len(times), [
        {"at_s": round(a, 1), "seconds": round(b - a, 1)} for a, b in pairs if a > START_S and b - a > GAP_S
    ]
