"""A headless Chromium with a made camera, and visits to the page that computes in the browser, with waits.

Its policy forbids eval, so that Playwright's own wait_for_function fails there; `until` asks again and again instead.
"""

import os
import shutil
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler
from pathlib import Path
from typing import Any

import numpy as np
from made.local_server import running
from made.processes import descendants
from made.waiting import PATIENCE_S
from PIL import Image

from steadyseg.core.errors import InputError

BROWSER_FLAGS = ("--no-sandbox", "--disable-background-networking", "--disable-component-update", "--disable-sync")
CAMERA_FLAGS = ("--disable-gpu", "--use-fake-ui-for-media-stream", "--use-fake-device-for-media-stream")
GIVEN_BACK_S = 15
"""Chromium gives back what an ended worker had a few seconds later, up to 300 MB of it."""


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


def write_camera(path: Path, images: Iterable[np.ndarray]) -> Path:
    """Motion JPEG, which Chromium plays as its camera, over and over: equal pictures are equal frames, which an encoder
    with rate control does not promise."""
    with path.open("wb") as file:
        for image in images:
            Image.fromarray(image).save(file, "jpeg", quality=95)
    return path


class QuietFiles(SimpleHTTPRequestHandler):
    """Server like `python -m http.server` without its log; it counts the bytes of every file that was `sent`."""

    def __init__(self, *given: Any, sent: Counter[str], **options: Any) -> None:
        self.sent = sent
        super().__init__(*given, **options)

    def copyfile(self, source: Any, outputfile: Any) -> None:
        self.sent[self.path] += os.fstat(source.fileno()).st_size if hasattr(source, "fileno") else 0
        super().copyfile(source, outputfile)

    def log_message(self, *_: object) -> None:
        return


@contextmanager
def static_server(folder: Path, port: int = 0, sent: Counter[str] | None = None) -> Iterator[str]:
    """The address of a folder, served without a header beyond type and length. `sent`: bytes by address."""
    counted = Counter[str]() if sent is None else sent
    with running(partial(QuietFiles, directory=str(folder), sent=counted), port) as address:
        yield f"{address}/"


@contextmanager
def tab(browser: Any, address: str, ready: bool = True, **options: Any) -> Iterator[Any]:
    """The page in a context of its own; AssertionError where it asks another host or its scripts fail."""
    foreign: list[str] = []
    errors: list[str] = []
    context = browser.new_context(**{"viewport": {"width": 1280, "height": 800}, **options})
    host = "/".join(address.split("/")[:3]) + "/"
    context.on("request", lambda one: None if one.url.startswith((host, "data:", "blob:")) else foreign.append(one.url))
    try:
        page = context.new_page()
        page.set_default_timeout(1e3 * PATIENCE_S)
        page.on("pageerror", lambda error: errors.append(str(error)))
        page.goto(address)
        if ready:
            until(page, "!!globalThis.steadyseg")
        yield page
    finally:
        context.close()
    assert not foreign and not errors


def until(page: Any, expression: str, seconds: float = PATIENCE_S) -> None:
    """Waits until the expression is true; a reload in between is no failure."""
    deadline = time.monotonic() + seconds
    while True:
        try:
            if page.evaluate(expression):
                return
        except Exception as error:
            if "context was destroyed" not in str(error):
                raise
        assert time.monotonic() < deadline, f"{expression}: {page.inner_text('#message')}"
        time.sleep(0.05)


def play(page: Any, what: str = "sample", shown: int = 1) -> None:
    """Presses the play button and waits for so many results."""
    page.click(f"[data-do={what}]")
    until(page, f"steadyseg.instruments.shown >= {shown}")


def start_again(page: Any, times: int) -> None:
    """Stops and starts with the sample: each start of a camera costs Chromium 10 MB, whatever the page does."""
    for _ in range(times):
        page.click("[data-do=stop]")
        until(page, "!steadyseg.source")
        play(page)


def workers_left(page: Any, most: int) -> int:
    """Number of segmenters' workers; waits until at most `most` are left."""
    deadline = time.monotonic() + PATIENCE_S
    while (count := sum(one.url.startswith("blob:") for one in page.workers)) > most and time.monotonic() < deadline:
        page.wait_for_timeout(50)  # terminated ones are reported a little later
    return count


def message(page: Any, part: str) -> str:
    """Waits for the page's message and returns it."""
    deadline = time.monotonic() + PATIENCE_S
    while part not in (said := str(page.inner_text("#message"))):
        assert time.monotonic() < deadline, said
        time.sleep(0.05)
    return said


def fact(page: Any, name: str) -> str:
    """A figure as the page shows it."""
    return str(page.inner_text(f"[data-fact={name}]"))


def memory_mb(page: Any) -> dict[str, float]:
    """The page's heap after a collection, and all processes of Chromium, once they have settled."""
    page.wait_for_timeout(GIVEN_BACK_S * 1000)
    heap = page.evaluate("gc(); performance.memory.usedJSHeapSize")
    return {"heap_mb": heap / 1e6, "chromium_mb": sum(resident_mb())}


def resident_mb() -> Iterator[float]:
    """Resident memory of the browser's processes below this one, shared memory by its part."""
    for pid in descendants(os.getpid()):
        try:
            if b"chrom" not in Path(f"/proc/{pid}/cmdline").read_bytes():
                continue
            rollup = Path(f"/proc/{pid}/smaps_rollup").read_text()
        except OSError:  # it has ended
            continue
        yield next(int(line.split()[1]) / 1e3 for line in rollup.splitlines() if line.startswith("Pss:"))
