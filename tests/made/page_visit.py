"""How the page's tests visit it: made cameras, a browser's context, and what they wait for."""

import base64
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest
from made.browser_visit import launch_chromium
from made.processes import free_port
from made.waiting import PATIENCE_S, wait_for

from steadyseg.app.page.flags import PageOptions
from steadyseg.app.page.server import Page, build_page
from steadyseg.core.errors import InputError

PATIENCE_MS = 1e3 * PATIENCE_S
GRADIO = (
    pytest.mark.filterwarnings("ignore:'future.no_silent_downcasting' is deprecated"),
    pytest.mark.filterwarnings("ignore:The copy keyword is deprecated"),
)
"""Marks of tests of the whole page: Gradio's use of pandas warns after each event, in its server's threads."""


def stripes(count: int, height: int = 120, width: int = 160) -> list[np.ndarray]:
    """Coloured stripes that wander to the right: no two neighbours are equal."""
    ramp = np.indices((height, width))[1]
    return [
        np.stack([(ramp * 3 + 9 * index) % 256, (ramp * 5 + 20 * index) % 256, (255 - ramp) % 256], -1).astype(np.uint8)
        for index in range(count)
    ]


def wait_until_ready(page: Any, plays: bool = False) -> None:
    """Waits until the page listens, after it was opened or reloaded."""
    page.locator(".stage [data-do=camera]").first.wait_for()
    if not plays:
        page.locator(".stage [data-do=stop]:enabled").first.click()


@contextmanager
def visitor(browser: Any, address: str, width: int = 1280, plays: bool = False, **options: Any) -> Iterator[Any]:
    """The page in a context of its own; whatever it asks of another host, and any error in its scripts, fails the
    test. `plays`: its own video goes on, which the page plays when it opens; else it is stopped."""
    foreign: list[str] = []
    errors: list[str] = []
    context = browser.new_context(viewport={"width": width, "height": 800}, permissions=["camera"], **options)
    context.on("request", lambda request: foreign.append(request.url) if is_foreign(request.url, address) else None)
    try:
        page = context.new_page()
        page.on("pageerror", lambda error: errors.append(str(error)))
        page.set_default_timeout(PATIENCE_MS)
        page.goto(address)
        wait_until_ready(page, plays)
        yield page
        page.goto("about:blank")  # leaving as a reader does: the page says goodbye to the server
    finally:
        context.close()  # also where a test fails: its stream would take a place from the next one
    assert not foreign and not errors


def is_foreign(url: str, address: str) -> bool:
    return not url.startswith((address, "data:", "blob:"))


@contextmanager
def page_at(model: str, **options: Any) -> Iterator[tuple[Page, str]]:
    """(a page of this process, its address) for the length of a `with` block."""
    page = build_page(PageOptions(**{"model": model, "port": free_port(), "no_open_browser": True, **options}))
    try:
        yield page, page.launch()
    finally:
        page.close()


def event_of(page: Page, button: str, session: str) -> dict[str, Any]:
    """The event of a button with that id, with the values that the page begins with."""
    config = page.blocks.config
    number = next(part["id"] for part in config["components"] if part["props"].get("elem_id") == button)
    event = next(one for one in config["dependencies"] if any(target[0] == number for target in one["targets"]))
    values = {part["id"]: part["props"].get("value") for part in config["components"]}
    return {"data": [values[part] for part in event["inputs"]], "fn_index": event["id"], "session_hash": session}


def start_camera(page: Any, shown: int = 1) -> None:
    """Presses the button and waits for so many pictures."""
    page.locator(".stage [data-do=camera]").first.click()
    wait_for_shown(page, shown)


def wait_for_shown(page: Any, more: int) -> None:
    """Waits until so many further pictures were shown."""
    count = int(page.evaluate("steadyseg.counts.shown")) + more
    page.wait_for_function("count => steadyseg.counts.shown >= count", arg=count)


def picture(page: Any, side: str, tab: str = "live") -> str:
    """What a canvas shows, as a data URL."""
    canvas = page.locator(f".stage[data-stage={tab}] canvas[data-picture={side}]")
    return str(canvas.evaluate("canvas => canvas.toDataURL()"))


def fact(page: Any, name: str) -> str:
    """A metric of the page's strip, as a reader sees it."""
    return str(page.locator(f"[data-fact={name}]").first.inner_text())


def pixels(page: Any, side: str) -> np.ndarray:
    """What a canvas of the tab Live shows, (H, W, 3) int16."""
    data = base64.b64decode(picture(page, side).partition(",")[2])
    return cv2.imdecode(np.frombuffer(data, np.uint8), cv2.IMREAD_COLOR).astype(np.int16)


def differ(one: np.ndarray, other: np.ndarray) -> bool:
    """True if a viewer could see a difference: a steady mean of equal frames still rounds differently now and then."""
    return one.shape != other.shape or float(np.abs(one - other).mean()) > 0.5


def settled(page: Any) -> tuple[np.ndarray, np.ndarray]:
    """Both pictures of a camera that never changes, once they stay the same over several frames."""
    now = (pixels(page, "left"), pixels(page, "right"))

    def stays() -> bool:
        nonlocal now
        before = now
        wait_for_shown(page, 3)
        now = (pixels(page, "left"), pixels(page, "right"))
        return not any(map(differ, now, before))

    wait_for(stays)
    return now


def set_number(page: Any, name: str, value: float) -> None:
    """Types a value into a slider's box."""
    box = page.locator(f"#{name} input[type=number]")
    box.fill(str(value))
    box.press("Enter")


def open_more(page: Any) -> None:
    """Unfolds the settings that are rarely changed."""
    page.locator("#more button").first.click()
    page.locator("#calibrated input").wait_for()


def choose(page: Any, name: str, option: str) -> None:
    """Takes an entry of a drop-down list."""
    page.locator(f"#{name} input").click()
    page.get_by_role("option", name=option).click()


def launched(playwright: Any, camera: Path, *flags: str) -> Any:
    try:
        return launch_chromium(playwright, camera, *flags)
    except InputError as error:
        pytest.skip(str(error))
