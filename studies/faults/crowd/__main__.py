"""Forty visitors at once, four of them hostile: what the page answers to the honest ones, and what it holds.

    python -m steadyseg.studies.faults.crowd [--seconds 600] [--model camvid-realtime]

The limits are LIMITS. A record of the same length and model is kept; --fresh measures again. Exit code 1 where a limit
is passed. It needs the machine for itself. The record is docs/studies/reliability/crowd.json.
"""

import argparse
import json
import signal
import sys
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from steadyseg.core.errors import InputError
from steadyseg.core.system.files import write_atomic
from steadyseg.studies.faults.crowd.visitors import HOSTILE, Counts, FileVisitor, LiveVisitor
from steadyseg.studies.faults.page_soak.__main__ import sample, served
from steadyseg.studies.faults.page_soak.visitors import street_jpegs, street_video
from steadyseg.studies.harness.study import PAGES, exit_code, origin

RECORD = PAGES / "reliability" / "crowd.json"
LIVE, FILES = 24, 12
"""Honest visitors with a camera, and with a file; HOSTILE come on top."""
RATE_HZ = 2.0
"""Pictures a second that each camera sends at most."""
UPLOAD_MB = 20
LIMITS = {"memory_above_mb": 300, "disk_mb": 8 * UPLOAD_MB, "upload_s": 10.0, "age_s": 2.0}
"""Memory above that when every honest visitor had been answered once; the page's quota; the longest time to the answer
to an honest upload; the greatest age of a live picture when it is back."""
ARRIVED_S = 600.0
"""Longest wait until every honest visitor has been answered once."""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--model", default="camvid-realtime")
    parser.add_argument("--json", type=Path, default=RECORD)
    parser.add_argument("--fresh", action="store_true", help="measure again what is recorded")
    given = parser.parse_args()
    passed: list[str] = []
    return exit_code("crowd", lambda: passed.extend(run(given))) or int(bool(passed))


def run(given: argparse.Namespace) -> list[str]:
    """The names of the limits that were passed; the record is written before."""
    record = json.loads(given.json.read_text()) if given.json.exists() and not given.fresh else {}
    if (record.get("seconds"), record.get("model")) != (given.seconds, given.model):
        record = {"seconds": given.seconds, "model": given.model, **origin(), **measured(given.seconds, given.model)}
        write_atomic(given.json, (json.dumps(record, indent=1) + "\n").encode())
    print(json.dumps({key: value for key, value in record.items() if key != "samples"}, indent=1))
    return [name for name, limit in LIMITS.items() if record["worst"][name] > limit]


def measured(seconds: float, model: str) -> dict[str, Any]:
    """One run: everyone comes, the hostile ones after the honest ones, and all stay to the end."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "server"
        folder.mkdir()
        flags = ("--max-sessions", str(LIVE), "--max-upload-mb", str(UPLOAD_MB))
        with served(model, folder, *flags) as (server, address):
            figures = crowd(server.pid, address, folder, seconds, model)
            server.send_signal(signal.SIGTERM)
            figures["exit_code_after_sigterm"] = server.wait(60)
        return figures | {"left_in_the_temporary_folder": sorted(path.name for path in folder.iterdir())}


def crowd(pid: int, address: str, folder: Path, seconds: float, model: str) -> dict[str, Any]:
    """Samples of the server, and what every visitor counted."""
    ended, pictures, video = threading.Event(), street_jpegs(), street_video(folder.parent / "drive.mp4")
    live = [LiveVisitor(address, pictures, RATE_HZ, model) for _ in range(LIVE)]
    files = [FileVisitor(address, video, number) for number in range(FILES)]
    hostile = [Counts() for _ in HOSTILE]
    honest: list[LiveVisitor | FileVisitor] = [*live, *files]
    load = [Path("/proc/loadavg").read_text().split()[0]]
    with ThreadPoolExecutor(LIVE + FILES + len(HOSTILE)) as pool:
        try:
            done = [pool.submit(one.stay, ended) for one in honest]
            wait_for(honest)
            samples, began_s = [sample(pid, folder)], time.monotonic()
            done += [
                pool.submit(act, address, ended, counts) for act, counts in zip(HOSTILE.values(), hostile, strict=True)
            ]
            while time.monotonic() - began_s < seconds:
                time.sleep(1)
                samples.append({"second": round(time.monotonic() - began_s), **sample(pid, folder)})
        finally:
            ended.set()
    for one in done:
        one.result()  # raises what a visitor raised
    load.append(Path("/proc/loadavg").read_text().split()[0])
    ages = sorted(age for one in live for age in one.ages_s)
    uploads = sorted(lasted for one in files for lasted in one.uploads_s)
    return {
        "load": load,
        "live": {
            "pictures": len(ages),
            "age_s": spread(ages),
            "late": sum(age > LIMITS["age_s"] for age in ages),
            **total([one.counts for one in live]),
        },
        "files": {"uploads": len(uploads), "upload_s": spread(uploads), **total([one.counts for one in files])},
        "hostile": {name: dict(counts) for name, counts in zip(HOSTILE, hostile, strict=True)},
        "start_mb": samples[0]["rss_mb"],
        "end_mb": samples[-1]["rss_mb"],
        "worst": {
            "memory_above_mb": max(one["rss_mb"] for one in samples) - samples[0]["rss_mb"],
            "disk_mb": max(one["disk_kb"] for one in samples) / 1000,
            "upload_s": uploads[-1],
            "age_s": ages[-1],
        },
        "samples": samples[::10],
    }


def total(counts: list[Counts]) -> dict[str, int]:
    return dict(sum(counts, Counts()))


def spread(values: list[float]) -> dict[str, float]:
    """Median, 99th percentile and largest of sorted values."""
    picked = {"p50": values[len(values) // 2], "p99": values[int(len(values) * 0.99)], "max": values[-1]}
    return {name: round(value, 3) for name, value in picked.items()}


def wait_for(honest: list[LiveVisitor | FileVisitor]) -> None:
    """Waits until all have been answered once. Raises InputError where that takes too long: each opens a network of 60
    MB, and memory would be measured from before they were there."""
    began_s = time.monotonic()
    while missing := sum(not one.answered for one in honest):
        if time.monotonic() - began_s > ARRIVED_S:
            load = Path("/proc/loadavg").read_text().split()[0]
            raise InputError(
                f"{missing} visitors have no answer after {ARRIVED_S:.0f} s at a load of {load}; run it alone"
            )
        time.sleep(0.2)


if __name__ == "__main__":
    sys.exit(main())
