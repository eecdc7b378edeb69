"""Tasks that take all memory, all time or their own process with them end as one line."""

import os
import signal
import sys
import time

import pytest
from refusals import refusal

from steadyseg.core.errors import InputError
from steadyseg.export.file import child

pytestmark = pytest.mark.slow


def joined(data: bytes, name: str, number: int) -> bytes:
    return data + f"{name} {number}".encode()


def refuse(data: bytes, name: str) -> bytes:
    raise InputError(f"{name}: {len(data)} bytes")


def fail(data: bytes, name: str) -> bytes:
    os.kill(os.getpid(), signal.SIGKILL)
    return data


def fill(data: bytes, name: str) -> bytes:
    return bytes(2 * child.MEMORY)


def sleep(data: bytes, name: str) -> bytes:
    time.sleep(3600)
    return data


def test_what_a_task_makes_and_refuses_comes_back() -> None:
    assert child.run_limited(joined, b"\0data ", "a 'file'", 3) == b"\0data a 'file' 3"
    assert refusal(child.run_limited, refuse, b"data", "m.onnx") == "m.onnx: 4 bytes"


def test_a_task_that_ends_its_process_is_refused() -> None:
    assert "m.onnx: its check ended by signal 9" in refusal(child.run_limited, fail, b"", "m.onnx")


@pytest.mark.skipif(sys.platform != "linux", reason="no other system limits the address space")
def test_a_task_that_takes_all_memory_is_refused() -> None:
    assert "m.onnx: its check ended by MemoryError" in refusal(child.run_limited, fill, b"", "m.onnx")


def test_a_task_without_end_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(child, "WALL_S", 1)
    assert "m.onnx: its check took longer than 1 s" in refusal(child.run_limited, sleep, b"", "m.onnx")
