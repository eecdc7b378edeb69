"""A Ray cluster of one machine, as `ray start --head` makes it, but on loopback and with a token."""

import os
import re
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from made.waiting import PATIENCE_S

PROJECT = Path(__file__).parents[2]
TOKEN = {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": "a-token-of-the-tests-0123456789abcdef"}
"""What its clients need in their environment."""
LOOPBACK = {"RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0"}
"""Ray's switch for a cluster of one machine."""
START = "import sys, ray; {before}; from ray.scripts.scripts import main; sys.argv[0] = 'ray'; main()"


@contextmanager
def head(*flags: str, before: str = "pass") -> Iterator[str]:
    """The address of a head. `before`: Python that its process runs first."""
    with socket.create_server(("127.0.0.1", 0)) as one:
        address = f"127.0.0.1:{one.getsockname()[1]}"
    command = [
        sys.executable,
        "-c",
        START.format(before=before),
        "start",
        "--head",
        "--block",
        "--include-dashboard=false",
        "--disable-usage-stats",
        "--node-ip-address=127.0.0.1",
        f"--port={address.split(':')[1]}",
        f"--object-store-memory={80 * 2**20}",
        *flags,
    ]
    its_own = LOOPBACK | TOKEN | {"PYTHONPATH": str(PROJECT), "PYTHONUNBUFFERED": "1"}
    process = subprocess.Popen(
        command, env=os.environ | its_own, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    try:
        said = ""
        assert process.stdout is not None
        while not re.search("Ray runtime started", said):
            line = process.stdout.readline()
            assert line, said
            said += line
        yield address
    finally:
        process.terminate()
        process.communicate(timeout=PATIENCE_S)
