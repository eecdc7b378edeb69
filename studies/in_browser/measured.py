"""The parts of the study: parity by provider, speed by provider and threads, and ten minutes of camera."""

import json
import os
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from steadyseg.seg.street.drive import Street
from steadyseg.studies.in_browser.parity import compare_in_browser
from steadyseg.studies.in_browser.visit import play, start_again, static_server, tab, workers_left

FRAMES = 50
SECONDS, SETTLE_S = 30, 5
ROWS: dict[str, tuple[str, int, tuple[str, ...]]] = {
    "WebAssembly, 2 threads": ("wasm", 2, ()),
    "WebAssembly, one thread": ("wasm", 1, ()),
    "WebGPU by SwiftShader": ("webgpu", 1, ("--enable-unsafe-webgpu",)),
}
"""Name -> provider, threads, and what Chromium needs for it. SwiftShader emulates a graphics card on the
processor: its results equal WebGPU's, its speed does not."""
GPU_PIXELS = 100_000
"""Largest picture in pixels that is computed on SwiftShader, which is slow."""
GIVEN_BACK_S = 15
"""Chromium gives back what an ended worker had a few seconds later, up to 300 MB of it."""
Start = Callable[..., Any]


def measure_sizes(site: Path, start: Start) -> dict[str, int]:
    """Bytes that the server sends for a first visit by WebAssembly that plays the sample, by kind of file."""
    sent = Counter[str]()
    with static_server(site, sent=sent) as address, tab(start(), address) as page:
        play(page)
    rows = {"page": 0, "runtime": 0, "models": 0, "sample": 0}
    for path, count in sent.items():
        folder = path.strip("/").partition("/")[0] if path.count("/") > 1 else "page"
        rows["runtime" if folder.startswith("runtime") else folder] += count
    gpu = read(site)["runtime"]["webgpu"]
    parts = (gpu[part]["path"] for part in ("entry", "glue", "wasm"))
    return {**rows, "runtime_webgpu": sum((site / path).stat().st_size for path in parts)}


def measure_parity(site: Path, start: Start) -> dict[str, Any]:
    """Compares the maps of one street clip by Python's ONNX Runtime and by each provider in the browser."""
    manifest, found = read(site), {}
    height, width = manifest["height"], manifest["width"]
    frames = [frame.image for frame in Street(seed=7, height=height, width=width).frames(FRAMES)]
    for name, (provider, threads, flags) in ROWS.items():
        if provider == "webgpu" and height * width > GPU_PIXELS:
            continue
        with static_server(site) as address, tab(start(*flags, gpu=bool(flags)), address) as page:
            found[name] = compare_in_browser(page, site, frames, provider, threads)
        print(name, found[name], flush=True)
    return found


def measure_speed(site: Path, start: Start) -> dict[str, Any]:
    """Plays a camera for half a minute with each number of threads; the first result counts from the page's opening."""
    found = {}
    for name, (provider, threads, flags) in ROWS.items():
        if provider != "wasm":
            continue
        with static_server(site) as address:
            asked = f"{address}?provider={provider}&threads={threads}"
            began_s = time.monotonic()
            with tab(start(*flags), asked, permissions=["camera"]) as page:
                play(page, "camera")
                first_s = time.monotonic() - began_s
                page.wait_for_timeout(SETTLE_S * 1000)
                found[name] = {
                    "first_result_s": first_s,
                    **watch(page, SECONDS),
                    "runs_on": page.inner_text("[data-fact=runs]"),
                }
        print(name, found[name], flush=True)
    return found


def watch(page: Any, seconds: int) -> dict[str, Any]:
    """Rate and ages of what is shown from now on, as a visitor sees it."""
    page.evaluate("steadyseg.instruments.begin(); globalThis.began = [performance.now(), steadyseg.source.presented]")
    page.wait_for_timeout(seconds * 1000)
    ages, presented, lasted_ms = page.evaluate(
        "[steadyseg.instruments.ages, steadyseg.source.presented - began[1], performance.now() - began[0]]"
    )
    ages.sort()
    return {
        "frames_per_s": 1e3 * len(ages) / lasted_ms,
        "camera_per_s": 1e3 * presented / lasted_ms,
        "age_ms_p50": ages[len(ages) // 2],
        "age_ms_p95": ages[int(len(ages) * 0.95)],
    }


def measure_soak(site: Path, start: Start, seconds: int) -> dict[str, Any]:
    """The page at work: memory of Chromium's processes and of the JavaScript heap over time, and the hosts that were
    asked."""
    with static_server(site) as address:
        browser = start("--js-flags=--expose-gc", "--enable-precise-memory-info")
        with tab(browser, address, permissions=["camera"]) as page:
            play(page, "camera")
            samples = [memory_mb(page) for _ in range(max(3, seconds // GIVEN_BACK_S))]
            shown = page.evaluate("steadyseg.instruments.shown")
            start_again(page, 3)
            before = memory_mb(page)
            start_again(page, 20)
            workers = workers_left(page, 1)
            after = {**memory_mb(page), "chromium_mb_before": before["chromium_mb"]}
    third = max(1, len(samples) // 3)
    parts = [samples[:third], samples[third : 2 * third], samples[2 * third :]]
    return {
        "seconds": seconds,
        "shown": shown,
        "requests_to_other_hosts": 0,  # `tab` would have failed
        "thirds": {key: [max(one[key] for one in part) for part in parts] for key in ("heap_mb", "chromium_mb")},
        "after_20_starts": {**after, "workers": workers},
    }


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


def descendants(pid: int) -> Iterator[int]:
    try:
        children = [
            int(one) for task in Path(f"/proc/{pid}/task").iterdir() for one in (task / "children").read_text().split()
        ]
    except OSError:
        return
    for child in children:
        yield child
        yield from descendants(child)


def read(site: Path) -> dict[str, Any]:
    return dict(json.loads((site / "manifest.json").read_text()))
