"""A real RTSP server, and a proxy before it."""

import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from made.processes import free_port
from made.rtsp.proxy import Proxy

from steadyseg.core.errors import InputError

SYSTEM_PYTHON = "/usr/bin/python3"


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
