"""The processes of a command that a test started: its workers on either engine, all that is below it, and its port."""

import socket
from pathlib import Path


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as one:
        return int(one.getsockname()[1])


def descendants(pid: int) -> set[int]:
    """All living processes below that one."""
    parents = {}
    for place in Path("/proc").iterdir():
        if place.name.isdigit():
            try:
                state, parent = (place / "stat").read_text().rsplit(")", 1)[1].split()[:2]
            except OSError:
                continue
            if state != "Z":
                parents[int(place.name)] = int(parent)
    found = {pid}
    while new := {child for child, parent in parents.items() if parent in found} - found:
        found |= new
    return found - {pid}


def workers_of(pid: int) -> list[int]:
    """The processes that segment."""
    return sorted(
        one for one in descendants(pid) if b"spawn_main" in words_of(one) or words_of(one).startswith(b"ray::run")
    )


def words_of(pid: int) -> bytes:
    """The command line of a process; empty for one that is gone."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ")
    except OSError:
        return b""
