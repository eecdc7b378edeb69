"""A headless Chromium with a made camera, for the studies and tests that drive the page."""

import os
import shutil
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from steadyseg.core.errors import InputError
from steadyseg.seg.street.drive import Street

CAMERA_FRAMES, CAMERA_HZ = 250, 25
BROWSER_FLAGS = ("--no-sandbox", "--disable-background-networking", "--disable-component-update", "--disable-sync")
CAMERA_FLAGS = ("--disable-gpu", "--use-fake-ui-for-media-stream", "--use-fake-device-for-media-stream")
FIRST_PICTURE_MS = 120_000


def wait_for_picture(page: Any) -> None:
    page.wait_for_function("steadyseg.counts.shown > 0", timeout=FIRST_PICTURE_MS)


@contextmanager
def browser_page(camera: Path) -> Iterator[Any]:
    """A page of a headless Chromium whose camera plays that file."""
    try:
        from playwright.sync_api import sync_playwright
    except ImportError as error:
        raise InputError("driving the page needs Playwright: pip install playwright") from error
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
    """A headless Chromium without a camera. Raises InputError where there is none."""
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
    """Size in kB of all files in a folder."""
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file()) // 1000
