"""Parity, speed and memory of the page that computes in the browser; writes docs/studies/browser.

    python -m steadyseg.studies.in_browser [--models street-tiny] [--only sizes parity speed soak] [--soak-seconds 600]
        [--calibration-data DIR]        # CamVid's folder: also measures each network in int8

Each model is exported first (into runs/in_browser, kept). Chromium runs on the same cores; its camera is a drive down
the street, 480x360 at 25 Hz. A part that is measured again replaces its rows, the others stay.
"""

import argparse
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from steadyseg.app.cli import main as steadyseg
from steadyseg.app.in_browser.site import is_site
from steadyseg.core.errors import InputError
from steadyseg.core.system.machine import cpu_name
from steadyseg.studies.harness.browser import street_camera
from steadyseg.studies.harness.bundle import round_figures
from steadyseg.studies.harness.pages import write_page
from steadyseg.studies.harness.study import PAGES, Cache, exit_code, origin
from steadyseg.studies.in_browser.measured import measure_parity, measure_sizes, measure_soak, measure_speed

PROJECT = Path(__file__).resolve().parents[2]
PAGE, RUNS = PAGES / "browser", PROJECT / "runs" / "in_browser"
MEASURES: dict[str, Callable[..., dict[str, Any]]] = {
    "sizes": measure_sizes,
    "parity": measure_parity,
    "speed": measure_speed,
    "soak": measure_soak,
}
MODELS = ("street-tiny", "camvid-realtime", "camvid-mobile")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", nargs="+", default=MODELS)
    parser.add_argument("--only", nargs="+", choices=MEASURES, default=tuple(MEASURES))
    parser.add_argument("--soak-seconds", type=int, default=600)
    parser.add_argument("--calibration-data", type=Path)
    given = parser.parse_args()
    return exit_code("in_browser", lambda: run(given.models, given.only, given.soak_seconds, given.calibration_data))


def run(models: list[str], parts: list[str], soak_s: int, calibration_data: Path | None) -> None:
    cache = Cache(PAGE / "record.json")
    with tempfile.TemporaryDirectory() as folder, chromium_starter(Path(folder)) as start:
        for model in models:
            sites = {model: exported(model)}
            if calibration_data:
                sites[f"{model}, int8"] = exported(model, "--precision", "int8", "--calibration-data", calibration_data)
            for name, site in sites.items():
                record = cache.record.setdefault(name, {})
                for part in parts:
                    settings = {"seconds": soak_s} if part == "soak" else {}
                    rows = MEASURES[part](site, start, **settings)
                    record[part] = {"made": {**origin(), "processor": cpu_name()}, "rows": round_figures(rows)}
                    cache.write()
    write_page("browser")


def exported(model: str, *flags: str | Path) -> Path:
    """The folder of `steadyseg export MODEL --target web`."""
    site = RUNS / "-".join([Path(model).stem, *(str(flag) for flag in flags[1:2])])
    if not is_site(site):
        site.parent.mkdir(parents=True, exist_ok=True)
        if steadyseg(["export", model, "--target", "web", "-o", str(site), *map(str, flags)]) != 0:
            raise InputError(f"{model} was not exported")
    return site


@contextmanager
def chromium_starter(folder: Path) -> Iterator[Any]:
    """start(*flags) -> a Chromium with a camera; each is closed when the next one is started."""
    from playwright.sync_api import sync_playwright

    from steadyseg.studies.harness.browser import CAMERA_FLAGS, launch_bare_chromium

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
