"""`steadyseg demo --measure`: the page in a headless browser with a made camera, and what it reaches on this machine."""

import os
import shutil
import tempfile
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from app.page.flags import PageOptions
from app.page.server import serving
from core.errors import InputError
from seg.street.drive import Street

CAMERA_FRAMES, CAMERA_HZ = 250, 25
BROWSER_FLAGS = ("--no-sandbox", "--disable-background-networking", "--disable-component-update", "--disable-sync")
CAMERA_FLAGS = ("--disable-gpu", "--use-fake-ui-for-media-stream", "--use-fake-device-for-media-stream")
FIRST_PICTURE_MS = 120_000
TARGET_RATE_HZ, TARGET_AGE_MS, MOST_CYCLES = 15.0, 200.0, 50
"""What two cores, shared with the browser, should reach with camvid-realtime and 480x360."""
SETTLE_S = 5
"""After the first pictures, before anything counts."""


def measure_page(options: PageOptions) -> int:
    """Streams for `options.measure` seconds, then connects and leaves up to 50 times; prints the figures and returns 0.

    Raises InputError where there is no Chromium or Playwright, or the page shows nothing.
    """
    with tempfile.TemporaryDirectory(prefix="steadyseg-camera-") as folder:
        camera = street_camera(Path(folder) / "camera.mjpeg")
        with (
            serving(replace(options, open_browser=False)) as (_, address, files),
            browser_page(camera) as page,
        ):
            print(
                f"measuring for {options.measure} s with {camera.name} of the street, 480x360 at {CAMERA_HZ} Hz",
                flush=True,
            )
            for line in figures(page, address, files, options.measure or 0):
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
    yield f"camera frames: {1e3 * counts['camera'] / lasted_ms:.1f} a second, {counts['camera'] - counts['shown']} dropped"
    p50, p95 = ages[len(ages) // 2], ages[int(len(ages) * 0.95)]
    yield f"latency, camera to screen: p50 {p50:.0f} ms, p95 {p95:.0f} ms (target {TARGET_AGE_MS:g})"
    half = len(rss_mb) // 2
    yield (
        f"memory of the server: {rss_mb[0]:.0f} MB at first, {max(rss_mb[:half]):.0f} at most in the first half, "
        f"{max(rss_mb[half:]):.0f} in the second"
    )
    yield f"disk: {disk_kb[0]} kB at first, {max(disk_kb)} at most, {disk_kb[-1]} in the end"
    cycles = min(MOST_CYCLES, max(1, seconds // 10))
    before_mb = memory_mb()
    for _ in range(cycles):
        page.goto(address)
        page.locator(".stage [data-do=camera]").first.click()
        wait_for_picture(page)
    yield f"{cycles} visitors who came and left: memory {before_mb:.0f} -> {memory_mb():.0f} MB, disk {disk_use_kb(files)} kB"


def wait_for_picture(page: Any) -> None:
    page.wait_for_function("steadyseg.counts.shown > 0", timeout=FIRST_PICTURE_MS)


@contextmanager
def browser_page(camera: Path) -> Iterator[Any]:
    """A page of a headless Chromium whose camera plays that file."""
    try:
        from playwright.sync_api import sync_playwright
    except ImportError as error:
        raise InputError("--measure needs Playwright: pip install playwright") from error
    with sync_playwright() as playwright:
        browser = launch_chromium(playwright, camera)
        try:
            yield browser.new_context(viewport={"width": 1280, "height": 800}, permissions=["camera"]).new_page()
        finally:
            browser.close()


def launch_chromium(playwright: Any, camera: Path, *flags: str) -> Any:
    """A headless Chromium whose camera plays that file. Raises InputError where there is none."""
    return launch_bare_chromium(playwright, *CAMERA_FLAGS, f"--use-file-for-fake-video-capture={camera}", *flags)


def launch_bare_chromium(playwright: Any, *flags: str) -> Any:
    """The same without a camera."""
    own = playwright.chromium.executable_path
    names = (shutil.which(name) for name in ("chromium", "chromium-browser", "google-chrome"))
    found = next(filter(None, names), own if Path(own).is_file() else None)
    if found is None:
        raise InputError("no Chromium is found: `.venv/bin/playwright install --with-deps chromium` brings one")
    return playwright.chromium.launch(executable_path=found, args=[*BROWSER_FLAGS, *flags])


def street_camera(path: Path, frames: int = CAMERA_FRAMES) -> Path:
    """A drive down the street as Chromium's camera."""
    street = Street(seed=7, height=360, width=480, fps=CAMERA_HZ)
    return write_camera(path, (frame.image for frame in street.frames(frames)))


def write_camera(path: Path, images: Iterable[np.ndarray]) -> Path:
    """Motion JPEG, which Chromium plays as its camera, over and over."""
    import av

    with av.open(str(path), "w", format="mjpeg") as container:
        stream = container.add_stream("mjpeg", rate=CAMERA_HZ, options={"q:v": "3"})
        for image in images:
            if not stream.codec_context.is_open:
                stream.height, stream.width, stream.pix_fmt = *image.shape[:2], "yuvj420p"
            container.mux(stream.encode(av.VideoFrame.from_ndarray(image)))
        container.mux(stream.encode())
    return path


def memory_mb() -> float:
    """Resident memory of this process, the server; the browser is another one."""
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6


def disk_use_kb(folder: Path) -> int:
    """Of everything that the page wrote."""
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file()) // 1000
