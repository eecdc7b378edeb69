"""An hour of the page under load: visitors who stay, visitors who come and go, and file jobs.

    python -m steadyseg.studies.faults.page_soak [--seconds 3600] [--model camvid-realtime]

The server is a process of its own. Its memory, threads, open files and folder are sampled from outside.
The record is docs/studies/reliability/page-soak.json.
"""

import argparse
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from steadyseg.core.errors import InputError
from steadyseg.core.system.files import write_atomic
from steadyseg.studies.faults.page_soak.visitors import (
    LiveVisitor,
    make_up_sessions,
    run_file_job,
    street_jpegs,
    street_video,
)
from steadyseg.studies.harness.browser import browser_page, disk_use_kb, street_camera, wait_for_picture
from steadyseg.studies.harness.pages import write_page
from steadyseg.studies.harness.study import PAGES, exit_code, origin

PAGE = PAGES / "reliability"
STAYING, PASSING, JOBS = 3, 200, 20
"""Visitors besides the browser's, those who come for five pictures and leave, and file jobs, of which half are
cancelled."""
SAMPLE_S = 10.0
WARM = 0.1
"""Share of the time after which the first figures are taken: networks are compiled and pools are full by then."""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=3600)
    parser.add_argument("--model", default="camvid-realtime")
    given = parser.parse_args()
    return exit_code("page_soak", lambda: run(given.seconds, given.model))


def run(seconds: float, model: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        (place / "server").mkdir()
        with (
            served(model, place / "server") as (server, address),
            browser_page(street_camera(place / "cam.mjpeg")) as page,
        ):
            page.goto(address)
            page.locator(".stage [data-do=camera]").first.click()
            wait_for_picture(page)
            record = {"model": model, "seconds": seconds, **origin()}
            record |= soak(server.pid, address, place, page, seconds)
            server.send_signal(signal.SIGTERM)
            record["exit_code_after_sigterm"] = server.wait(60)
        record["left_in_the_temporary_folder"] = [path.name for path in (place / "server").iterdir()]
    print(json.dumps({key: value for key, value in record.items() if key != "samples"}, indent=1))
    write_atomic(PAGE / "page-soak.json", (json.dumps(record, indent=1) + "\n").encode())
    write_page("reliability")


def soak(pid: int, address: str, folder: Path, page: Any, seconds: float) -> dict[str, Any]:
    """Runs all visitors and jobs at once until the time is over; returns samples and counts."""
    ended, samples, began_s = threading.Event(), [sample(pid, folder / "server")], time.monotonic()
    pictures = street_jpegs()
    staying = [LiveVisitor(address, pictures, rate_hz) for rate_hz in (2.0, 5.0, 15.0)[:STAYING]]
    passing = {"came": 0, "made_up": 0, "pictures": 0, "refused": 0}
    jobs = {"done": 0, "stopped": 0, "failed": 0, "refused": 0}
    threads = [threading.Thread(target=visitor.stay, args=(ended,)) for visitor in staying]
    threads.append(threading.Thread(target=pass_by, args=(address, pictures, seconds, ended, passing)))
    threads.append(threading.Thread(target=work, args=(address, folder, seconds, ended, jobs)))
    for thread in threads:
        thread.start()
    while time.monotonic() - began_s < seconds:
        page.wait_for_timeout(SAMPLE_S * 1000)
        samples.append({"second": round(time.monotonic() - began_s), **sample(pid, folder / "server")})
    ended.set()
    for thread in threads:
        thread.join(120)
    shown, ages = page.evaluate("[steadyseg.counts.shown, steadyseg.ages.slice().sort((a, b) => a - b)]")
    return {
        "browser": {
            "shown": shown,
            "per_second": round(shown / seconds, 2),
            "age_ms_p50": round(ages[len(ages) // 2]),
            "age_ms_p95": round(ages[int(len(ages) * 0.95)]),
        },
        "staying": [visitor.counts for visitor in staying],
        "passing": passing,
        "jobs": jobs,
        "flat": flatness(samples[max(1, int(len(samples) * WARM)) :]),
        "samples": samples,
    }


def pass_by(
    address: str, pictures: list[bytes], seconds: float, ended: threading.Event, counts: dict[str, int]
) -> None:
    """Sends one visitor after the other."""
    for _ in range(PASSING):
        began_s = time.monotonic()
        visitor = LiveVisitor(address, pictures, 15.0)
        visitor.show(5)
        counts["came"] += 1
        counts["made_up"] += make_up_sessions(address)
        counts["pictures"] += visitor.counts["answered"]
        counts["refused"] += visitor.counts["refused"]
        if ended.wait(max(0.0, seconds / PASSING - (time.monotonic() - began_s))):
            return


def work(address: str, folder: Path, seconds: float, ended: threading.Event, counts: dict[str, int]) -> None:
    """Runs one file job after the other and stops every second one half way."""
    video = street_video(folder / "drive.mp4")
    for number in range(JOBS):
        began_s = time.monotonic()
        counts[run_file_job(address, video, stop=number % 2 == 1)] += 1
        if ended.wait(max(0.0, seconds / JOBS - (time.monotonic() - began_s))):
            return


def sample(pid: int, files: Path) -> dict[str, Any]:
    """Resources that the server holds now."""
    status = Path(f"/proc/{pid}/status").read_text()
    figures = {key: int(found[1]) for key in ("VmRSS", "Threads") if (found := re.search(rf"{key}:\s+(\d+)", status))}
    return {
        "rss_mb": figures["VmRSS"] // 1024,
        "threads": figures["Threads"],
        "handles": len(os.listdir(f"/proc/{pid}/fd")),
        "disk_kb": disk_use_kb(files),
        "entries": sum(1 for _ in files.rglob("*")),
    }


def flatness(samples: list[dict[str, Any]]) -> dict[str, Any]:
    """The largest value of each third: what grows without end is larger in the last."""
    third = max(1, len(samples) // 3)
    parts = [samples[:third], samples[third : 2 * third], samples[2 * third :]]
    keys = ("rss_mb", "threads", "handles", "disk_kb", "entries")
    return {key: [max(one[key] for one in part) for part in parts] for key in keys}


@contextmanager
def served(model: str, folder: Path, *flags: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """(the server's process, its address); what it writes lies in `folder`."""
    command = [sys.executable, "-m", "steadyseg.app.cli", "demo", model, "--port", "7899", "--no-open-browser"]
    command += flags or ["--max-sessions", str(STAYING + 2)]
    environment = {**os.environ, "TMPDIR": str(folder), "PYTHONUNBUFFERED": "1"}
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        try:
            line = server.stdout.readline()
            found = re.search(r"http://\S+", line)
            if found is None:
                raise InputError(f"the page did not start: {line.strip()}")
            threading.Thread(target=server.stdout.read, daemon=True).start()
            yield server, found[0]
        finally:
            server.kill()


if __name__ == "__main__":
    sys.exit(main())
