"""The pictures of the page in the documents: docs/page-live.jpg and docs/page-compare.jpg.

    python docs/page_pictures.py SOURCE [CHROMIUM]

On an idle machine: the pictures show frames a second. They were taken of Udacity's `solidWhiteRight.mp4` (MIT).
"""

import re
import subprocess
import sys
import time
from pathlib import Path

from playwright.sync_api import Page, sync_playwright

DOCS = Path(__file__).resolve().parent
PORT = "7946"
PIXEL = 0.13, 0.62
"""The clicked pixel, as shares of the picture's width and height."""
SETTLED_S = 20
"""Seconds until rates and curves have settled."""


def play(page: Page, stage: str) -> None:
    """Plays the page's own video in a tab, unless it plays, until there is a rate."""
    rate = f"() => parseFloat(document.querySelector('[data-stage={stage}] [data-fact=fps]')?.textContent) > 0"
    if page.locator(f"[data-stage={stage}] button[data-do=stop]").is_disabled():
        page.click(f"[data-stage={stage}] button[data-do=server]")
    page.wait_for_function(rate, timeout=120_000)


def main(source: str, chromium: str = "/usr/bin/chromium") -> None:
    command = [sys.executable, "-m", "steadyseg", "demo", "--source", source, "--port", PORT, "--no-open-browser"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server, sync_playwright() as playwright:
        assert server.stdout is not None
        found = re.search(r"http://\S+", server.stdout.readline())
        assert found, "the page gave no address"
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 1280, "height": 860})
        page.goto(found[0])
        for stage, tab in (("live", "Live"), ("compare", "Compare")):
            page.get_by_role("tab", name=tab).click()
            play(page, stage)
            box = page.locator(f"[data-stage={stage}] canvas[data-picture=left]").bounding_box()
            assert box is not None
            page.mouse.click(box["x"] + PIXEL[0] * box["width"], box["y"] + PIXEL[1] * box["height"])
            time.sleep(SETTLED_S)
            page.screenshot(path=DOCS / f"page-{stage}.jpg", type="jpeg", quality=80)
        browser.close()
        server.terminate()


if __name__ == "__main__":
    main(*sys.argv[1:])
