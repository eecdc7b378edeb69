"""The product as a process, watched from outside: its time, its output, and the memory of it and its workers."""

import os
import subprocess
import sys
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]


@dataclass
class RunInfo:
    """A command that has ended."""

    code: int
    seconds: float
    said: str
    driver_kb: list[int] = field(default_factory=list)
    """Resident memory of the driver, once a second."""


def start(*words: object, **options: Any) -> "subprocess.Popen[str]":
    """`steadyseg WORDS`."""
    command = [sys.executable, "-m", "steadyseg.app.cli", *map(str, words)]
    return subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **options)


def run(*words: object) -> RunInfo:
    """Runs a command to its end."""
    began_s = time.monotonic()
    process = start(*words)
    samples: list[int] = []
    threading.Thread(target=sample, args=(process.pid, samples), daemon=True).start()
    said, _ = process.communicate()
    return RunInfo(process.returncode, time.monotonic() - began_s, said, samples)


def sample(pid: int, samples: list[int]) -> None:
    """Samples memory until the process ends."""
    while (kb := resident_kb(pid)) is not None:
        samples.append(kb)
        time.sleep(1)


def resident_kb(pid: int) -> int | None:
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return None
    return next((int(line.split()[1]) for line in lines if line.startswith("VmRSS:")), None)


def busy_s(pid: int) -> float:
    """Seconds of a core that the process has had so far; 0 where it has ended."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def descendants(pid: int) -> set[int]:
    """All processes below that one."""
    parents: dict[int, int] = {}
    for place in Path("/proc").iterdir():
        if place.name.isdigit():
            try:
                parents[int(place.name)] = int((place / "stat").read_text().rsplit(")", 1)[1].split()[1])
            except OSError:
                continue
    found = {pid}
    while new := {child for child, parent in parents.items() if parent in found} - found:
        found |= new
    return found - {pid}


def workers_of(pid: int) -> list[int]:
    """The processes that segment, of either engine."""
    found = []
    for one in descendants(pid):
        try:
            words = Path(f"/proc/{one}/cmdline").read_bytes().replace(b"\0", b" ")
        except OSError:
            continue
        if b"spawn_main" in words or words.startswith(b"ray::WorkerProxy"):
            found.append(one)
    return found


def cores() -> int:
    return len(os.sched_getaffinity(0))
