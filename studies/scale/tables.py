"""The tables of docs/studies/scale, from its record."""

from collections.abc import Callable
from functools import partial
from typing import Any

from steadyseg.studies.harness.tables import Tables, bind, read_record, table

Record = dict[str, Any]
PAPER = 200
"""Cameras that nobody has run."""
ENGINES = {"loop": "one loop a core", "local": "`steadyseg batch`", "ray": "`--ray local`"}
CAMERA_ROWS = {
    "cameras": "cameras",
    "fps": "frames a second of each",
    "sample_fps": "of which are segmented a second (0: all)",
    "seconds": "seconds watched",
    "workers": "workers",
    "step_ms": "a frame alone, ms",
    "opening_s": "seconds until every camera had a frame",
    "settled_s": "seconds counted, from ten after that",
    "settled_frames": "frames segmented in them",
    "settled_dropped": "dropped",
    "settled_dropped_share": "share dropped",
    "fps_mean": "frames a second at the end, mean",
    "fps_lowest": "lowest",
    "age_p50_s": "age of the latest frame, median s",
    "age_max_s": "at most",
    "worker_cores": "cores that the workers had",
    "worker_mb": "memory of the workers, MB",
    "dropped": "dropped in all, the opening included",
    "without_a_frame": "cameras without a frame",
    "alarms": "alarms",
    "restarts": "restarts",
}
CAPACITY_KEYS = (
    "fps settled_s settled_frames settled_dropped settled_dropped_share fps_lowest age_p50_s age_max_s worker_cores"
).split()

HOUR_KEYS = ("cameras", "fps", "sample_fps", "seconds", "settled_frames", "settled_dropped", "alarms", "restarts")


def tables() -> Tables:
    """The tables by their names in the page."""
    record = read_record("scale")
    by_study = {name: partial(make, record[name]) for name, make in TABLES.items() if name in record}
    return {**bind(record, {"runs": runs_table}), **by_study}


def runs_table(record: Record) -> str:
    """The command and the machine of each study."""
    lines = [
        [name, f"`{found['command']}`", found["commit"], found["cpu"], f"{found['load_before']:.1f}"]
        for name in TABLES
        if (found := record.get(name))
    ]
    return table(["study", "measured by", "commit", "processor", "load before it"], lines)


def throughput_table(record: Record) -> str:
    """Plain loops beside the engines."""
    engines = [name for name in ENGINES if name in record]
    rows = (
        ("seconds, from the start of the command to its end", "seconds", 0),
        ("clips a second", "clips_per_s", 3),
        ("of the loops' (target 0.9 or more)", "of_the_loops", 3),
        ("a clip more than in a loop, ms of a core (target less than 150)", "more_a_clip_ms", 0),
        ("the same of its work alone", "more_at_work_ms", 0),
        ("a clip, median s of a core", "clip_p50_s", 3),
        ("memory of a worker at most, MB", "worker_mb", 0),
    )
    lines = [[title, *(fixed(record[name].get(key), digits) for name in engines)] for title, key, digits in rows]
    for when in ("after a tenth", "at the end", "at most"):
        driver = (record[name].get("driver_mb", {}).get(when) for name in engines)
        lines.append([f"memory of the driver {when}, MB", *(fixed(value, 0) for value in driver)])
    core_s = [
        record["cores"] / found["clips_per_s"] / (found["frames"] / record["clips"] / 25) if "frames" in found else None
        for found in (record[name] for name in engines)
    ]
    lines.append(["cores' seconds for a second of this video", *(fixed(value, 2) for value in core_s)])
    title = f"{record['clips']} clips, {record['cores']} cores, `{record['model']}`"
    return table([title, *(ENGINES[one] for one in engines)], lines)


def kills_table(record: Record) -> str:
    """Losses by killed workers and drivers, a column for each engine."""
    engines = [name for name in ENGINES if name in record]
    names = {
        "clips": "clips",
        "workers": "workers killed",
        "drivers": "drivers killed",
        "videos_lost": "videos lost",
        "rows_expected": "rows in all tables, expected",
        "rows": "found",
        "files": "files compared by hash",
        "files_that_differ": "that differ",
        "files_too_many": "too many",
        "half_folders_left": "half folders left",
    }
    return table(("", *engines), ([title, *(str(record[one][key]) for one in engines)] for key, title in names.items()))


def cameras_table(record: Record) -> str:
    """One run with many cameras."""
    lines = [[title, plain(record[key])] for key, title in CAMERA_ROWS.items()]
    each = record["worker_cores"] / record["cameras"]
    lines.append(["cores of the workers for each camera", f"{each:.3f}"])
    lines.append([f"cores for {PAPER} such cameras, on paper", f"{PAPER * each:.1f}"])
    return table((f"{record['cores']} cores, `{record['model']}`", ""), lines)


def hour_table(record: Record) -> str:
    """An hour of a few cameras: what stayed, and what grew."""
    rows = [[title, plain(record[key])] for key, title in CAMERA_ROWS.items() if key in HOUR_KEYS]
    for name, title in (("memory", "workers"), ("driver", "command")):
        megabytes = ", ".join(f"{value:.0f}" for value in record["resident_mb"][name])
        rows.append([f"memory of the {title}, MB: after a tenth, in the middle, at the end, at most", megabytes])
    return table((f"{record['cores']} cores, `{record['model']}`", ""), rows)


def capacity_table(record: Record) -> str:
    """Runs with more and more cameras, a column each."""
    tried = record["tried"]
    lines = [[CAMERA_ROWS[key], *(plain(one[key]) for one in tried)] for key in CAPACITY_KEYS]
    lines.append(["holds", *("yes" if one["holds"] else "no" for one in tried)])
    paper = (str(-(-PAPER * one["cores"] // one["cameras"])) if one["holds"] else "-" for one in tried)
    lines.append([f"cores for {PAPER} at so many on {tried[0]['cores']} cores, on paper", *paper])
    return table(("cameras", *(str(one["cameras"]) for one in tried)), lines)


def start_table(record: Record) -> str:
    """Start-up time of the engines."""
    lines = (
        [ENGINES[one], *(f"{record[one][at]:.1f}" for at in (record["runs"] // 2, -1))] for one in ("local", "ray")
    )
    return table(("from the engine's first import to a worker's first answer", "median, s", "slowest, s"), lines)


def fixed(value: float | None, digits: int) -> str:
    return "-" if value is None else f"{value:.{digits}f}"


def plain(value: float | dict[str, int] | None) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{count} {name}" for name, count in value.items()) or "none"
    if not isinstance(value, float):
        return "-" if value is None else str(value)
    return f"{value:.0f}" if value >= 100 else f"{value:.3g}"


TABLES: dict[str, Callable[[Record], str]] = {
    "throughput": throughput_table,
    "throughput-ray": throughput_table,
    "kills": kills_table,
    "cameras": cameras_table,
    "hour": hour_table,
    "capacity": capacity_table,
    "start": start_table,
}
"""Table functions by study."""
