"""A batch against one loop per core over the same clips: throughput, additional cost of a clip, memory of the driver.

Both are timed from the start of their processes to the end of the last one.
"""

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from steadyseg.core.errors import CheckFailed
from steadyseg.studies.scale.run import ROOT, cores, run

MODEL = "street-tiny"
RAY_FLAGS: dict[str, tuple[str, ...]] = {"local": (), "ray": ("--ray", "local")}
"""Flags of `steadyseg batch` by engine."""


def measure_loops(clips: list[Path], folder: Path) -> dict[str, Any]:
    """Each core's share in a process of its own; the time until the last ends, and of the clips but the first of
    each."""
    began_s, processes = time.monotonic(), []
    for number, core in enumerate(sorted(os.sched_getaffinity(0))):
        listed = folder / f"list{number}"
        listed.write_text("\n".join(str(clip) for clip in clips[number :: cores()]))
        words = [sys.executable, "-m", "steadyseg.studies.scale.loop", str(core), str(listed), str(folder), MODEL]
        processes.append(subprocess.Popen(words, cwd=ROOT, stdout=subprocess.PIPE, text=True))
    seconds = [json.loads(process.communicate()[0].splitlines()[-1]) for process in processes]
    ended_s = time.monotonic() - began_s
    warm = [one for each in seconds for one in each[1:]]
    return {
        "seconds": ended_s,
        "clips_per_s": len(clips) / ended_s,
        "clip_p50_s": statistics.median(warm),
        "clip_mean_s": statistics.mean(warm),
    }


def measure_batch(clips: Path, engine: str, out: Path) -> dict[str, Any]:
    """The command as a user calls it. CheckFailed where it does not end well."""
    ran = run("batch", clips, "-o", out, "--model", MODEL, *RAY_FLAGS[engine])
    if ran.code:
        raise CheckFailed(f"the batch ended with code {ran.code}: {ran.said[-500:]}")
    summary = json.loads((out / "summary.json").read_text())
    slowest_first = sorted(video["seconds"] for video in summary["videos"])
    warm = slowest_first[: -cores()]  # the first of each worker imports and compiles
    tenth = max(1, len(ran.driver_kb) // 10)
    return {
        "seconds": ran.seconds,
        "clips_per_s": len(summary["videos"]) / ran.seconds,
        "clip_p50_s": statistics.median(warm),
        "clip_mean_s": statistics.mean(warm),
        "frames": summary["frames"],
        "failed": summary["failed"],
        "worker_mb": max(video["memory_bytes"] for video in summary["videos"]) / 2**20,
        "driver_mb": {
            "after a tenth": ran.driver_kb[tenth] / 1024,
            "at the end": ran.driver_kb[-2] / 1024,
            "at most": max(ran.driver_kb) / 1024,
        },
    }


def measure(clips: Path, engines: tuple[str, ...]) -> dict[str, Any]:
    """Measures plain loops, then every engine."""
    paths = sorted(clips.glob("*.mp4"))
    record: dict[str, Any] = {"clips": len(paths), "cores": cores(), "model": MODEL}
    with tempfile.TemporaryDirectory(prefix="steadyseg-") as folder:
        record["loop"] = measure_loops(paths, Path(folder))
    for engine in engines:
        with tempfile.TemporaryDirectory(prefix="steadyseg-") as folder:
            record[engine] = measure_batch(clips, engine, Path(folder))
            record[engine]["of_the_loops"] = record[engine]["clips_per_s"] / record["loop"]["clips_per_s"]
            more_s = record[engine]["clip_mean_s"] - record["loop"]["clip_mean_s"]
            record[engine]["more_at_work_ms"] = 1e3 * more_s
            more_s = cores() * (record[engine]["seconds"] - record["loop"]["seconds"]) / len(paths)
            record[engine]["more_a_clip_ms"] = 1e3 * more_s  # start, hand-over and summary, divided among all clips
    return record
