"""The tables of docs/studies/reliability, from the records of its three runs."""

from collections import Counter
from functools import partial
from typing import Any

from steadyseg.studies.harness.tables import Tables, read_record, table

Record = dict[str, Any]
WARM_S = 60
"""Seconds until memory is looked at: allocators and caches fill at first."""
SOAK_ROWS = {
    "resident memory, MB": "rss_mb",
    "threads": "threads",
    "open files and sockets": "handles",
    "visitors' files, kB": "disk_kb",
    "entries in the temp folder": "entries",
}
FUZZING_HEADER = (
    "kind",
    "files",
    "passed the first check",
    "stages reached",
    "opened and ran",
    "refused in one line",
    "traceback, hang, crash",
    "slowest",
    "memory above an undamaged file's",
    "commit",
)


def tables() -> Tables:
    """The tables by their names in the page."""
    names = ("rtsp", "page-soak", "fuzzing", "crowd")
    rtsp, soak, fuzzing, crowd = (read_record("reliability", f"{name}.json") for name in names)
    return {
        "rtsp_faults": partial(faults_table, rtsp["video"]),
        "rtsp_video": partial(outcome_table, rtsp["video"]),
        "rtsp_page": partial(outcome_table, rtsp["page"]),
        "visits": partial(visits_table, soak),
        "soak": partial(soak_table, soak),
        "crowd": partial(crowd_table, crowd),
        "fuzzing": partial(fuzzing_table, fuzzing),
    }


def faults_table(record: Record) -> str:
    """The faults of the stream, which both runs had."""
    happened = Counter(fault["kind"] for fault in record["faults"])
    lines = []
    for kind, count in happened.items():
        lasted = [fault["seconds"] for fault in record["faults"] if fault["kind"] == kind]
        lines.append([kind, str(count), ", ".join(f"{one:g}" for one in lasted) if any(lasted) else "-"])
    return table(("fault", "times", "seconds that it lasted"), lines)


def outcome_table(record: Record) -> str:
    """Counts, outages and memory of one run."""
    gaps = [gap["seconds"] for gap in record["outages"]]
    outages = f"{len(gaps)}, {max(gaps, default=0):.1f}, {sum(gaps):.1f}"
    ends = f"{record['exit_code']}, {record['tracebacks']}, {record['passwords_shown']}"
    counts = {
        **(counted_page(record) if "pictures" in record else counted_video(record)),
        "outages over 1 s: how many, the longest, all together in s": outages,
        **memory(record["samples"]),
        "exit code, tracebacks, times that the password was shown": ends,
    }
    lines = ((name, str(value)) for name, value in counts.items())
    return table((f"`{record['command']}` (commit {record['commit']})", ""), lines)


def counted_video(record: Record) -> Record:
    losses = record["losses"]
    damaged = losses.get("decode_error", 0) + losses.get("corrupt_frame", 0)
    return {
        "frames segmented, frames in the video": f"{record['frames']}, {record['frames_in_the_video']}",
        "frames dropped for a newer one": losses.get("dropped_newer_frame", 0),
        "reconnections": losses.get("reconnect", 0),
        "times reading broke off, damaged packets or frames": f"{losses.get('read_error', 0)}, {damaged}",
        "changes of the size": losses.get("size_change", 0),
        "time stamps mended (the first one of a connection is missing)": losses.get("mended_time", 0),
        "starts of the temporal mean": sum(record["resets"].values()),
    }


def counted_page(record: Record) -> Record:
    errors = record["errors_shown"]
    return {
        "pictures shown": record["pictures"],
        "answers without a picture": sum(errors.values()),
        "their texts": "; ".join(f"{count} times: {text}" for text, count in errors.items()) or "-",
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


def visits_table(record: Record) -> str:
    """Visitors of the page, and what became of them."""
    passing, jobs, staying = record["passing"], record["jobs"], record["staying"]
    counts = {
        "model, commit": f"`{record['model']}`, {record['commit']}",
        "minutes": f"{record['seconds'] / 60:.0f}",
        "pictures of a Chromium with a camera": record["browser"]["shown"],
        "answers to three visitors at up to 2, 5 and 15 pictures a second": ", ".join(
            str(one["answered"]) for one in staying
        ),
        "of them not back after the server had closed their idle connection": sum("left_early" in o for o in staying),
        "visitors for five pictures each: came, refused": f"{passing['came']}, {passing['refused']}",
        "sessions without a page, each with 31 kB of text": passing["made_up"],
        "file jobs: waited for, stopped half way, failed": f"{jobs['done']}, {jobs['stopped']}, {jobs['failed']}",
        "exit code after SIGTERM, files left": (
            f"{record['exit_code_after_sigterm']}, {len(record['left_in_the_temporary_folder'])}"
        ),
    }
    return table(("the page for an hour", ""), ((name, str(value)) for name, value in counts.items()))


def soak_table(record: Record) -> str:
    """Largest values of the server by third of the run."""
    header = ("at most, from the sixth minute on", "first third", "second third", "last third")
    return table(header, ((name, *map(str, record["flat"][key])) for name, key in SOAK_ROWS.items()))


def crowd_table(record: Record) -> str:
    """What honest visitors were answered, and what the page held, beside its limits."""
    worst, live, files = record["worst"], record["live"], record["files"]
    jobs = ", ".join(str(files.get(f"job {end}", 0)) for end in ("done", "failed", "refused"))
    rows = (
        ("model, commit, minutes", f"`{record['model']}`, {record['commit']}, {record['seconds'] / 60:.0f}", ""),
        ("live pictures answered, of them later than the limit", f"{live['pictures']}, {live['late']}", ""),
        ("their age when they were back, s: median, at most", f"{live['age_s']['p50']}, {live['age_s']['max']}", "2"),
        (
            "uploads of honest visitors: stored, refused",
            f"{files.get('uploaded', 0)}, {files.get('status 507', 0)}",
            "",
        ),
        ("longest wait for the answer to one, s", f"{worst['upload_s']:.2f}", "10"),
        ("file jobs: done, failed, refused", jobs, ""),
        ("memory at the start, at the end, MB", f"{record['start_mb']}, {record['end_mb']}", ""),
        ("memory above the start at most, MB", f"{worst['memory_above_mb']}", "300"),
        ("disk at most, MB", f"{worst['disk_mb']:.0f}", "160"),
    )
    return table(("forty visitors, four of them hostile", "measured", "limit"), rows)


def fuzzing_table(record: Record) -> str:
    """One row a kind of file."""
    kinds = {name: row for name, row in record.items() if isinstance(row, dict) and "inputs" in row}
    return table(FUZZING_HEADER, (fuzzing_row(name, row) for name, row in kinds.items()))


def fuzzing_row(name: str, row: Record) -> list[str]:
    ends, count = dict(row["ends"]), row["inputs"]
    whole, refused = ends.pop("whole", 0), ends.pop("refused", 0)
    share = f"{row['passed_first_check']} ({row['passed_first_check'] / count:.0%})"
    reached = ", ".join(f"{stage} {reached}" for stage, reached in row["reached"].items())
    memory = f"{row['most_memory_above_undamaged_mb']} MB"
    counts = [str(whole), str(refused), str(sum(ends.values()))]
    return [name, str(count), share, reached, *counts, f"{row['slowest_s']} s", memory, row["commit"]]
