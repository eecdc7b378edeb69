"""The page whose `--source` is the stream: a visitor asks for one picture after the other while all faults happen."""

import json
import os
import secrets
import struct
import threading
import time
import urllib.error
import urllib.request
from collections import Counter
from dataclasses import asdict
from pathlib import Path
from typing import Any

from rich.console import Console

from steadyseg.core.errors import InputError
from steadyseg.studies.faults.rtsp.faults import FAULTS, free_port, inflict, served
from steadyseg.studies.faults.rtsp.watch import GAP_S, MODEL, address_of, ended, running, sampled
from steadyseg.studies.harness.study import origin

AGAIN_S = 1.0
"""Seconds between an error and the visitor's next try."""


class Visitor:
    """One browser's requests, without the browser."""

    def __init__(self, address: str) -> None:
        self._address = f"{address}live/{secrets.token_hex(16)}"
        self._left = threading.Event()
        self.pictures, self.errors = 0, Counter[str]()
        self.outages: list[dict[str, float]] = []
        self._thread = threading.Thread(target=self._run, daemon=True)

    def start(self) -> None:
        """Asks for pictures and returns with the first one, when the network is compiled."""
        deadline = time.monotonic() + 120
        while not self._picture():
            if time.monotonic() > deadline:
                raise InputError(f"the page shows no picture: {dict(self.errors)}")
        self._thread.start()

    def leave(self) -> None:
        self._left.set()
        self._thread.join(60)

    def _run(self) -> None:
        began_s = last_s = time.monotonic()
        while not self._left.is_set():
            if not self._picture():
                self._left.wait(AGAIN_S)
                continue
            now_s = time.monotonic()
            if now_s - last_s > GAP_S:
                self.outages.append({"at_s": round(last_s - began_s, 1), "seconds": round(now_s - last_s, 1)})
            last_s = now_s

    def _picture(self) -> bool:
        """Returns True if a picture came; otherwise counts the page's message."""
        settings = json.dumps({"model": MODEL}).encode()
        body = struct.pack("<I", len(settings)) + settings
        try:
            with urllib.request.urlopen(urllib.request.Request(self._address, body), timeout=60) as answer:
                came = answer.status == 200 and len(answer.read()) > 1000
        except urllib.error.HTTPError as error:
            with error:
                self.errors[json.loads(error.read())["error"] if error.code == 422 else f"HTTP {error.code}"] += 1
            return False
        self.pictures += came
        return came


def watch_page(folder: Path, seconds: float, tell: Console) -> dict[str, Any]:
    """Reports the pictures that a visitor saw, and what the server kept."""
    temporary = folder / "tmp"
    temporary.mkdir()
    with served() as (server, proxy):
        flags = [MODEL, "--source", address_of(proxy.port), "--port", str(free_port()), "--no-open-browser"]
        environment = os.environ | {"TMPDIR": str(temporary), "PYTHONUNBUFFERED": "1"}
        with running(folder, "demo", *flags, env=environment) as product:
            assert product.stdout is not None
            visitor = Visitor(product.stdout.readline().split()[2])
            visitor.start()
            samples = sampled(product)
            inflict(server, proxy, seconds, tell)
            visitor.leave()
            code, said = ended(product, folder)
    return {
        "command": f"steadyseg demo {MODEL} --source rtsp://...",
        **origin(),
        "seconds": seconds,
        "exit_code": code,
        "faults": [asdict(fault) for fault in FAULTS],
        "tracebacks": said.count("Traceback"),
        "passwords_shown": (said + " ".join(visitor.errors)).count("secret"),
        "pictures": visitor.pictures,
        "errors_shown": visitor.errors,
        "outages": visitor.outages,
        "connections": proxy.connections,
        "left_in_temp": sorted(path.name for path in temporary.glob("steadyseg-*")),
        "samples": samples,
    }
