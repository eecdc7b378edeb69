"""docs/studies/scale: how to go past one process, with tables from docs/studies/scale/record.json of what was
measured."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from core.system.files import write_atomic
from studies.harness.document import table

TEXT = Path(__file__).with_name("text.md")
FULL_SIZE = {"throughput": ("clips", 1000), "cameras": ("cameras", 50)}
"""Full size of each study; the page marks smaller runs."""
PAPER = 200
"""Cameras that nobody has run."""


def write_document(page: Path) -> None:
    write_atomic(page / "README.md", document(page).encode())


def document(page: Path) -> str:
    """The whole text: every {study} is its table, or that it was not measured."""
    path = page / "record.json"
    record: dict[str, Any] = json.loads(path.read_text()) if path.exists() else {}
    text = TEXT.read_text()
    for name, show in TABLES.items():
        text = text.replace(f"{{{name}}}", _section(name, record.get(name), show))
    return text


def _section(name: str, record: dict[str, Any] | None, show: Callable[[dict[str, Any]], str]) -> str:
    if record is None:
        return f"Not measured yet: `python -m studies.scale {name}` does it."
    key, full = FULL_SIZE.get(name, ("", 0))
    smaller = f" **Not at full size: {record[key]} {key}, {full} are meant.**" if key and record[key] < full else ""
    load = record["load_before"]
    return (
        f"`{record['command']}` at commit {record['commit']}, {record['cpu']}, load of the machine before it "
        f"{load:.1f}."
        f"{smaller}\n\n{show(record)}"
    )


def throughput(record: dict[str, Any]) -> str:
    """Loops against engines, and what 1,000 hours take."""
    return f"{engines_table(record)}\n\n{cost(record)}"


def engines_table(record: dict[str, Any]) -> str:
    engines = [name for name in ("loop", "local", "ray") if name in record]
    rows = (
        ("seconds, from the start of the command to its end", "seconds", 0),
        ("clips a second", "clips_per_s", 3),
        ("of the loops' (target 0.9 or more)", "of_the_loops", 3),
        ("a clip more than in a loop, ms of a core (target less than 150)", "more_a_clip_ms", 0),
        ("the same of its work alone", "more_at_work_ms", 0),
        ("a clip, median s of a core", "clip_p50_s", 3),
        ("memory of a worker at most, MB", "worker_mb", 0),
    )
    lines = [[title, *(_number(record[name].get(key), digits) for name in engines)] for title, key, digits in rows]
    driver = [
        [
            f"memory of the driver {when}, MB",
            *(_number(record[name].get("driver_mb", {}).get(when), 0) for name in engines),
        ]
        for when in ("after a tenth", "at the end", "at most")
    ]
    names = {"loop": "one loop a core", "local": "`--engine local`", "ray": "`--engine ray`"}
    header = (
        f"{record['clips']} clips, {record['cores']} cores, `{record['model']}`",
        *(names[one] for one in engines),
    )
    return table(header, [*lines, *driver])


def cost(record: dict[str, Any]) -> str:
    """Cost of 1,000 hours of such video."""
    core_s = record["cores"] / record["local"]["clips_per_s"]
    frames = record["local"]["frames"] / record["clips"]
    hours = core_s / (frames / 25)
    return (
        f"A second of this video (25 frames of 480x270) takes {hours:.2f} s of one core, so 1,000 hours take "
        f"{1000 * hours:.0f} core hours: multiply by the price of one. Larger frames and networks cost more: "
        "`steadyseg batch` over ten of your own videos says how much."
    )


def kills(record: dict[str, Any]) -> str:
    """A column an engine."""
    engines = [name for name in ("local", "ray") if name in record]
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


def cameras(record: dict[str, Any]) -> str:
    """One run."""
    rows = ([title, _plain(record[key])] for key, title in CAMERA_ROWS.items())
    return table((f"{record['cores']} cores, `{record['model']}`", ""), rows) + "\n\n" + cameras_on_paper(record)


def cameras_on_paper(record: dict[str, Any]) -> str:
    """More of the same."""
    each = record["worker_cores"] / record["cameras"]
    return f"A camera took {each:.3f} of a core, so on paper {PAPER} of them take {PAPER * each:.1f} cores."


def capacity_on_paper(record: dict[str, Any]) -> str:
    """From the largest number that held."""
    held = max((one["cameras"] for one in record["tried"] if one["holds"]), default=0)
    cores = record["tried"][0]["cores"]
    if not held:
        return "Not one held."
    return f"{held} held on {cores} cores, so on paper {PAPER} take {-(-PAPER * cores // held)} cores."


def capacity(record: dict[str, Any]) -> str:
    """A column a number of cameras."""
    tried = record["tried"]
    keys = tuple(
        (
            "fps settled_s settled_frames settled_dropped settled_dropped_share fps_lowest age_p50_s age_max_s "
            "worker_cores"
        ).split()
    )
    header = ("cameras", *(str(one["cameras"]) for one in tried))
    rows = ([CAMERA_ROWS[key], *(_plain(one[key]) for one in tried)] for key in keys)
    return table(header, rows) + "\n\n" + capacity_on_paper(record)


def start(record: dict[str, Any]) -> str:
    """Seconds of the engines."""
    rows = (
        [f"`--engine {one}`", *(f"{record[one][at]:.1f}" for at in (record["runs"] // 2, -1))]
        for one in ("local", "ray")
    )
    return table(("from the engine's first import to a worker's first answer", "median, s", "slowest, s"), rows)


def _number(value: float | None, digits: int) -> str:
    return "-" if value is None else f"{value:.{digits}f}"


def _plain(value: float | dict[str, int] | None) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{count} {name}" for name, count in value.items()) or "none"
    if not isinstance(value, float):
        return "-" if value is None else str(value)
    return f"{value:.0f}" if value >= 100 else f"{value:.3g}"


TABLES = {
    "throughput": throughput,
    "throughput-ray": engines_table,
    "kills": kills,
    "cameras": cameras,
    "capacity": capacity,
    "start": start,
}
