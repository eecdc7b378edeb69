"""Faults of an RTSP stream: a real server, a proxy before it, and a list of faults in time."""

import os
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from made.rtsp.proxy import Proxy
from rich.console import Console

from steadyseg.core.errors import InputError

SYSTEM_PYTHON = "/usr/bin/python3"


@dataclass(frozen=True)
class Fault:
    """One fault of the stream."""

    at: float
    """Share of the whole time after which it begins."""
    kind: str
    seconds: float = 0.0
    """Duration, independent of the length of the whole run."""


FAULTS = (
    *(Fault(at, "server killed", down) for at, down in ((0.05, 2), (0.13, 2), (0.21, 2), (0.29, 10), (0.34, 40))),
    Fault(0.50, "stalled", 30),
    *(Fault(at, "connections cut") for at in (0.60, 0.64, 0.68, 0.72, 0.76)),
    Fault(0.82, "size changed"),
    Fault(0.88, "size changed"),
    Fault(0.93, "server killed, another size after it", 2),
)


class Server:
    """tests/made/rtsp/server.py as a process."""

    def __init__(self, port: int, *transport: str) -> None:
        self.port, self.transport = port, transport
        self.start()

    def start(self) -> None:
        """Starts the server; returns when it listens."""
        command = [SYSTEM_PYTHON, str(Path(__file__).with_name("server.py")), str(self.port), *self.transport]
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
    """Causes all faults at their times; returns after the last one is over."""
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
