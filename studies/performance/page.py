"""The frame rate, latency and memory of the page, driven by a headless Chromium with a made camera.

python -m steadyseg.studies.performance.page --seconds 600 --model camvid-realtime
"""

import argparse
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from steadyseg.app.page.flags import PageOptions
from steadyseg.app.page.server import serving
from steadyseg.core.errors import InputError
from steadyseg.studies.harness.browser import (
    CAMERA_HZ,
    browser_page,
    disk_use_kb,
    memory_mb,
    street_camera,
    wait_for_picture,
)

TARGET_RATE_HZ, TARGET_AGE_MS, MAX_CYCLES = 15.0, 200.0, 50
"""Targets on two cores, shared with the browser, with camvid-realtime at 480x360."""
SETTLE_S = 5
"""Seconds after the first pictures before anything counts."""
MIN_SECONDS = 5


def measure_page(options: PageOptions, seconds: int) -> int:
    """Streams for `seconds`, then connects and leaves up to 50 times; prints the figures and returns 0.

    Raises InputError where there is no Chromium or Playwright, or the page shows nothing.
    """
    with tempfile.TemporaryDirectory(prefix="steadyseg-camera-") as folder:
        camera = street_camera(Path(folder) / "camera.mjpeg")
        with (
            serving(replace(options, open_browser=False)) as (_, address, files),
            browser_page(camera) as page,
        ):
            print(
                f"measuring for {seconds} s with {camera.name} of the street, 480x360 at {CAMERA_HZ} Hz",
                flush=True,
            )
            for line in figures(page, address, files, seconds):
                print(line, flush=True)
    return 0


def figures(page: Any, address: str, files: Path, seconds: int) -> Iterator[str]:
    """One line for each figure, with its target where there is one."""
    began = time.perf_counter()
    page.goto(address)
    page.locator(".stage [data-do=camera]").first.click()
    wait_for_picture(page)
    yield f"first picture: {time.perf_counter() - began:.1f} s after the page was asked for"
    page.wait_for_timeout(SETTLE_S * 1000)
    rss_mb, disk_kb = [memory_mb()], [disk_use_kb(files)]
    page.evaluate("steadyseg.counts = {camera: 0, shown: 0}; steadyseg.ages = []; measuredFrom = performance.now()")
    for _ in range(seconds):
        page.wait_for_timeout(1000)
        rss_mb.append(memory_mb())
        disk_kb.append(disk_use_kb(files))
    ages, counts, lasted_ms = page.evaluate("[steadyseg.ages, steadyseg.counts, performance.now() - measuredFrom]")
    if not ages:
        message = page.locator(".stage .message").first.inner_text()
        raise InputError(f"the page showed no picture ({message})")
    ages.sort()
    rate_hz = 1e3 * counts["shown"] / lasted_ms
    yield f"frames shown: {rate_hz:.1f} a second (target {TARGET_RATE_HZ:g}), {counts['shown']} in all"
    dropped = counts["camera"] - counts["shown"]
    yield f"camera frames: {1e3 * counts['camera'] / lasted_ms:.1f} a second, {dropped} dropped"
    p50, p95 = ages[len(ages) // 2], ages[int(len(ages) * 0.95)]
    yield f"latency, camera to screen: p50 {p50:.0f} ms, p95 {p95:.0f} ms (target {TARGET_AGE_MS:g})"
    half = len(rss_mb) // 2
    yield (
        f"memory of the server: {rss_mb[0]:.0f} MB at first, {max(rss_mb[:half]):.0f} at most in the first half, "
        f"{max(rss_mb[half:]):.0f} in the second"
    )
    yield f"disk: {disk_kb[0]} kB at first, {max(disk_kb)} at most, {disk_kb[-1]} in the end"
    cycles = min(MAX_CYCLES, max(1, seconds // 10))
    before_mb = memory_mb()
    for _ in range(cycles):
        page.goto(address)
        page.locator(".stage [data-do=camera]").first.click()
        wait_for_picture(page)
    memory = f"{before_mb:.0f} -> {memory_mb():.0f} MB"
    yield f"{cycles} visitors who came and left: memory {memory}, disk {disk_use_kb(files)} kB"


def main() -> int:
    """Parses the flags and measures; InputError for less than `MIN_SECONDS`."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=int, default=60)
    parser.add_argument("--model", default=PageOptions.model)
    parser.add_argument("--port", type=int, default=PageOptions.port)
    given = parser.parse_args()
    if given.seconds < MIN_SECONDS:
        raise InputError(f"--seconds must be {MIN_SECONDS} or more, got {given.seconds}")
    return measure_page(PageOptions(model=given.model, port=given.port), given.seconds)


if __name__ == "__main__":
    sys.exit(main())
