"""A real camera that speaks RTSP, as a process: tests/made/rtsp_server.py."""

import os
import signal
import subprocess
from pathlib import Path

from steadyseg.core.errors import InputError

SYSTEM_PYTHON = "/usr/bin/python3"


class Camera:
    """The server, with `transport` as the only one if it is given."""

    def __init__(self, port: int, *transport: str) -> None:
        self.port, self.transport = port, transport
        self.start()

    def start(self) -> None:
        """Starts the server; returns when it listens."""
        command = [SYSTEM_PYTHON, str(Path(__file__).with_name("rtsp_server.py")), str(self.port), *self.transport]
        environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
        self.process = subprocess.Popen(
            command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        assert self.process.stdout is not None and self.process.stderr is not None
        if self.process.stdout.readline() != "listening\n":
            raise InputError(f"no RTSP server: {self.process.stderr.read().strip().splitlines()[-1:]}; see its file")

    def change_size(self) -> None:
        self.process.send_signal(signal.SIGUSR1)

    def kill(self) -> None:
        self.process.kill()
        self.process.communicate()
