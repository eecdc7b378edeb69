"""The page that computes in the browser: is it right, how fast is it, does it stay flat; writes docs/browser.json and .md.

    python -m benchmarks.in_browser [--models street-tiny ...] [--only parity speed soak] [--soak-seconds 600]

Each model is exported first (into runs/in_browser, kept). Chromium runs on the same cores; its camera is a drive down the
street, 480x360 at 25 Hz. A part that is measured again replaces its rows, the others stay.
"""

import argparse
import platform
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from app.bench.machine import cpu_name
from app.cli import main as steadyseg
from app.in_browser.site import is_site
from app.page.measure import street_camera
from benchmarks.in_browser.document import write_document
from benchmarks.in_browser.measured import measure_parity, measure_soak, measure_speed, sizes
from benchmarks.study import Cache, exit_code, origin
from core.errors import InputError

PROJECT = Path(__file__).parents[2]
DOCS, RUNS = PROJECT / "docs", PROJECT / "runs" / "in_browser"
PARTS = ("parity", "speed", "soak")
MODELS = ("street-tiny", "camvid-realtime")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", nargs="+", default=MODELS)
    parser.add_argument("--only", nargs="+", choices=PARTS, default=PARTS)
    parser.add_argument("--soak-seconds", type=int, default=600)
    given = parser.parse_args()
    return exit_code("in_browser", lambda: run(given.models, given.only, given.soak_seconds))


def run(models: list[str], parts: list[str], soak_s: int) -> None:
    cache = Cache(DOCS / "browser.json")
    with tempfile.TemporaryDirectory() as folder, chromium_starter(Path(folder)) as start:
        for model in models:
            site = exported(model)
            record = cache.record.setdefault(model, {})
            record["sizes"] = sizes(site)
            if "parity" in parts:
                record["parity"] = measure_parity(site, start)
            if "speed" in parts:
                record["speed"] = measure_speed(site, start)
            if "soak" in parts:
                record["soak"] = measure_soak(site, start, soak_s)
            record["made"] = {**origin(), "processor": cpu_name(), "system": platform.platform()}
            cache.write()
    write_document(DOCS)


def exported(model: str) -> Path:
    """The folder of `steadyseg export MODEL --web`."""
    site = RUNS / Path(model).stem
    if not is_site(site):
        site.parent.mkdir(parents=True, exist_ok=True)
        if steadyseg(["export", model, "--web", str(site)]) != 0:
            raise InputError(f"{model} was not exported")
    return site


@contextmanager
def chromium_starter(folder: Path) -> Iterator[Any]:
    """start(*flags) -> a Chromium with a camera; each is closed when the next one is started."""
    from playwright.sync_api import sync_playwright

    from app.page.measure import CAMERA_FLAGS, launch_bare_chromium

    camera = street_camera(folder / "camera.mjpeg")
    running: list[Any] = []
    with sync_playwright() as playwright:

        def start(*flags: str, gpu: bool = False) -> Any:
            while running:
                running.pop().close()
            own = [flag for flag in CAMERA_FLAGS if not (gpu and flag == "--disable-gpu")]
            running.append(
                launch_bare_chromium(playwright, *own, f"--use-file-for-fake-video-capture={camera}", *flags)
            )
            return running[-1]

        try:
            yield start
        finally:
            while running:
                running.pop().close()


if __name__ == "__main__":
    sys.exit(main())
