"""The section *RTSP* of docs/studies/reliability, from docs/studies/reliability/rtsp.json."""

from collections import Counter
from typing import Any

from studies.harness.document import table, wrap

WARM_S = 60
"""Until then allocators and caches take what they want."""


def rtsp_section(record: dict[str, Any]) -> str:
    """Section of the page: each fault of the stream, and its outcome."""
    first = next(iter(record.values()))
    words = wrap(f"""
`python -m studies.faults.rtsp`: a real server, GStreamer's, 25 frames a second over TCP, behind a proxy of our own, for
{first["seconds"] / 60:.0f} minutes. At the end the product was sent SIGTERM.
""")
    happened = Counter(fault["kind"] for fault in first["faults"])
    faults = table(
        ("what was done to it", "times", "for so many seconds"),
        ((kind, str(count), seconds_of(first, kind)) for kind, count in happened.items()),
    )
    return "\n\n".join((words, faults, *(became(one) for one in record.values())))


def seconds_of(record: dict[str, Any], kind: str) -> str:
    lasted = [fault["seconds"] for fault in record["faults"] if fault["kind"] == kind]
    return ", ".join(f"{seconds:g}" for seconds in lasted) if any(lasted) else "-"


def became(record: dict[str, Any]) -> str:
    """A table: counts, outages, memory."""
    gaps = [gap["seconds"] for gap in record["outages"]]
    counts = {
        **(counted_page(record) if "pictures" in record else counted_video(record)),
        "outages over 1 s: how many, the longest, all together in s": f"{len(gaps)}, {max(gaps, default=0):.1f}, {sum(gaps):.1f}",
        **memory(record["samples"]),
        "exit code, tracebacks, times that the password was shown": f"{record['exit_code']}, {record['tracebacks']}, {record['passwords_shown']}",
    }
    title = f"`{record['command']}` (commit {record['commit']})"
    return table((title, ""), ((name, str(value)) for name, value in counts.items()))


def counted_video(record: dict[str, Any]) -> dict[str, Any]:
    losses = record["losses"]
    return {
        "frames segmented, frames in the video": f"{record['frames']}, {record['frames_in_the_video']}",
        "frames dropped for a newer one": losses.get("dropped_newer_frame", 0),
        "reconnections": losses.get("reconnect", 0),
        "times reading broke off, damaged packets or frames": f"{losses.get('read_error', 0)}, {losses.get('decode_error', 0) + losses.get('corrupt_frame', 0)}",
        "changes of the size": losses.get("size_change", 0),
        "time stamps mended (the first one of a connection lacks)": losses.get("mended_time", 0),
        "starts of the temporal mean": sum(record["resets"].values()),
    }


def counted_page(record: dict[str, Any]) -> dict[str, Any]:
    errors = record["errors_shown"]
    return {
        "pictures shown": record["pictures"],
        "answers without a picture": sum(errors.values()),
        "what they said": "; ".join(f"{count} times: {text}" for text, count in errors.items()) or "-",
        "connections to the stream": record["connections"],
        "left in the temp folder": ", ".join(record["left_in_temp"]) or "nothing",
    }


def memory(samples: list[dict[str, int]]) -> dict[str, str]:
    """Resident memory, threads and open files: after the first minute, at the end, and at most in between."""
    warm = samples[min(WARM_S, len(samples) - 1) :]
    shown = {"resident memory, MB": ("rss_kb", 1024), "threads": ("threads", 1), "open files": ("files", 1)}
    return {
        f"{name}: after a minute, at the end, at most": ", ".join(
            f"{round(value / unit)}" for value in (warm[0][key], warm[-1][key], max(one[key] for one in warm))
        )
        for name, (key, unit) in shown.items()
    }
