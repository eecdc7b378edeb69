"""Visits to the page that computes in the browser, for tests and studies: a plain server, a visitor, and waits.

Its policy forbids eval, so that Playwright's own wait_for_function fails there; `until` asks again and again instead.
"""

import os
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

PATIENCE_S = 300.0
"""Only a page that hangs takes that long, also where other work leaves this one a tenth of a core."""


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


class PatientServer(ThreadingHTTPServer):
    """HTTP/1.0 takes a connection for each file: with a queue of 5 a busy machine drops some, and a second goes by."""

    request_queue_size = 64


@contextmanager
def static_server(folder: Path, port: int = 0, sent: Counter[str] | None = None) -> Iterator[str]:
    """The address of a folder, served as any web host does: no header beyond type and length. `sent`: bytes by
    address."""
    counted = Counter[str]() if sent is None else sent
    server = PatientServer(("127.0.0.1", port), partial(QuietFiles, directory=str(folder), sent=counted))
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


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
    """Stops and starts, with the sample: each start of a camera costs Chromium's own capture 10 MB, whatever the page
    does."""
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
