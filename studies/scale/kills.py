"""kill -9 of workers and of the driver at random moments of a batch: what is lost, and what is made twice."""

import hashlib
import os
import signal
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet

from steadyseg.core.errors import CheckFailed
from steadyseg.studies.scale.run import run, start, workers_of
from steadyseg.studies.scale.throughput import MODEL, RAY_FLAGS

KILLS = 5
"""Kills of a worker, and as many of the driver."""


def measure(clips: Path, engine: str, seed: int = 0) -> dict[str, Any]:
    """Five workers are killed under a driver, then five drivers one after the other; the last run ends by itself."""
    moments = np.random.default_rng(seed)
    with tempfile.TemporaryDirectory(prefix="steadyseg-") as folder:
        whole, out = Path(folder) / "whole", Path(folder) / "killed"
        words = ["--model", MODEL, *RAY_FLAGS[engine]]
        if run("batch", clips, "-o", whole, "--masks", *words).code:
            raise CheckFailed("the run to which nothing happens did not end well")
        record: dict[str, Any] = {"engine": engine, "clips": len(list(clips.glob("*.mp4"))), "workers": 0, "drivers": 0}
        share = record["clips"] // (2 * KILLS + 2)
        driver = start("batch", clips, "-o", out, "--masks", *words)
        for number in range(2 * KILLS):
            _wait_for(out, (number + 1) * share, driver)
            time.sleep(moments.uniform(0, 1))
            if number < KILLS:
                os.kill(int(moments.choice(workers_of(driver.pid))), signal.SIGKILL)
                record["workers"] += 1
            else:
                driver.kill()
                driver.communicate()
                record["drivers"] += 1
                driver = start("batch", clips, "-o", out, "--masks", *words)
        said, _ = driver.communicate()
        if driver.returncode:
            raise CheckFailed(f"the last run ended with code {driver.returncode}: {said[-500:]}")
        expected, found = contents(whole), contents(out)
        record |= {
            "videos_lost": len({name.split("/")[0] for name in expected} - {name.split("/")[0] for name in found}),
            "files_that_differ": sum(found.get(name) != digest for name, digest in expected.items()),
            "files_too_many": len(found.keys() - expected.keys()),
            "files": len(expected),
            "rows": rows(out),
            "rows_expected": rows(whole),
            "half_folders_left": len(list(out.glob(".*.partial"))),
        }
    return record


def contents(out: Path) -> dict[str, str]:
    """A hash of every mask, and of every table without its column of time."""
    found = {
        str(path.relative_to(out)): hashlib.sha256(path.read_bytes()).hexdigest() for path in out.glob("*/masks/*.png")
    }
    for path in out.glob("*/frames.parquet"):
        text = str(pyarrow.parquet.read_table(path).drop_columns(["wall_ms"]).to_pylist())
        found[str(path.relative_to(out))] = hashlib.sha256(text.encode()).hexdigest()
    return found


def rows(out: Path) -> int:
    return sum(pyarrow.parquet.read_metadata(path).num_rows for path in out.glob("*/frames.parquet"))


def _wait_for(out: Path, videos: int, driver: Any) -> None:
    while len(list(out.glob("*/report.json"))) < videos:
        if driver.poll() is not None:
            raise CheckFailed(f"the batch ended by itself: {driver.communicate()[0][-500:]}")
        time.sleep(0.1)
