"""The section *RTSP* of docs/reliability.md, from docs/rtsp.json."""

import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

from benchmarks.document import table, wrap
from core.atomic_file import write_whole

HEADING = "## RTSP"
WARM_S = 60
"""Until then allocators and caches take what they want."""


def write_section(docs: Path) -> None:
    """Puts it in the place of the old one."""
    path = docs / "reliability.md"
    write_whole(path, with_section(path.read_text(), json.loads((docs / "rtsp.json").read_text())).encode())


def with_section(text: str, record: dict[str, Any]) -> str:
    """The document with the section of this record; at its end where there was none."""
    before, heading, rest = text.partition(f"{HEADING}\n")
    after = re.search(r"^## ", rest, re.MULTILINE) if heading else None
    return before.rstrip() + "\n\n" + section(record) + ("\n" + rest[after.start() :] if after else "")


def section(record: dict[str, Any]) -> str:
    """What happened to the stream, what the product made of it, and its memory."""
    losses, lost = record["losses"], sum(gap["seconds"] for gap in record["outages"])
    words = wrap(f"""
`python -m benchmarks.rtsp` ({record["seconds"] / 60:.0f} minutes; commit {record["commit"]}) runs `{record["command"]}` on a
real server, GStreamer's, 25 frames a second, behind a TCP proxy. The product ended with exit code {record["exit_code"]} when
it was sent SIGTERM, with {record["tracebacks"]} tracebacks and the password shown {record["passwords_shown"]} times.
""")
    happened = Counter(fault["kind"] for fault in record["faults"])
    faults = table(
        ("what was done to it", "times", "seconds without the stream"),
        ((kind, str(count), seconds_of(record, kind)) for kind, count in happened.items()),
    )
    counts = {
        "frames segmented": record["frames"],
        "frames in the video": record["frames_in_the_video"],
        "reconnections": losses.get("reconnect", 0),
        "times reading broke off": losses.get("read_error", 0),
        "changes of the size": losses.get("size_change", 0),
        "frames dropped for a newer one": losses.get("dropped_newer_frame", 0),
        "damaged frames": losses.get("corrupt_frame", 0) + losses.get("decode_error", 0),
        "outages in the video (over 1 s)": len(record["outages"]),
        "longest outage, s": max((gap["seconds"] for gap in record["outages"]), default=0.0),
        "all outages, s": round(lost, 1),
        **memory(record["samples"]),
    }
    counted = table(("what came of it", ""), ((name, str(value)) for name, value in counts.items()))
    return "\n\n".join((HEADING, words, faults, counted)) + "\n"


def seconds_of(record: dict[str, Any], kind: str) -> str:
    """Of each time, by the server's or the proxy's side."""
    lasted = [fault["seconds"] for fault in record["faults"] if fault["kind"] == kind]
    return ", ".join(f"{seconds:g}" for seconds in lasted) if any(lasted) else "-"


def memory(samples: list[dict[str, int]]) -> dict[str, str]:
    """Resident memory, threads and open files: after the first minute, at the end, and at most in between."""
    warm = samples[min(WARM_S, len(samples) - 1) :]
    shown = {"resident memory, MB": ("rss_kb", 1024), "threads": ("threads", 1), "open files": ("files", 1)}
    return {
        f"{name}: after a minute, at the end, at most":
        ", ".join(f"{round(value / unit)}" for value in (warm[0][key], warm[-1][key], max(one[key] for one in warm)))
        for name, (key, unit) in shown.items()
    }  # fmt: skip
