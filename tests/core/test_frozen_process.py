"""A frozen process of a training is found soon; a process that works alone gets time. The processes are real."""

import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from made.waiting import PATIENCE_S

ROOT = Path(__file__).parents[2]


def started(rank: int, port: int, meeting: Path) -> "subprocess.Popen[str]":
    """Starts a process as torchrun does."""
    environment = os.environ | {
        "PYTHONPATH": str(ROOT),
        "RANK": str(rank),
        "LOCAL_RANK": str(rank),
        "WORLD_SIZE": "2",
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(port),
        "TORCHELASTIC_RUN_ID": "frozen",
    }
    command = [sys.executable, str(ROOT / "tests/core/frozen_worker.py"), str(meeting)]
    return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="freezes a process by SIGSTOP")
def test_a_frozen_process_is_found_and_one_that_evaluates_is_waited_for(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as one:
        port = one.getsockname()[1]
    first, second = (started(rank, port, tmp_path) for rank in range(2))
    try:
        said, errors = first.communicate(timeout=PATIENCE_S)
        assert first.returncode == 1, errors
        lines = [line for line in said.splitlines() if not line.startswith("[Gloo]")]
        assert lines[0] == "met" and len(lines) == 2
        assert (
            lines[1].startswith("process 0: another one has ended, or has not answered for") and "--resume" in lines[1]
        )
        second.send_signal(signal.SIGCONT)  # it wakes up and finds that the other process is gone
        said, errors = second.communicate(timeout=PATIENCE_S)
        assert second.returncode == 1 and "process 1: another one has ended" in said, errors
    finally:
        first.kill()
        second.kill()
