"""A real HTTP server on this machine, for the tests of what is fetched; each test says how it answers."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

Respond = Callable[[BaseHTTPRequestHandler, bytes, int], None]
"""(handler, content, how many requests there were for it)."""


class PatientServer(ThreadingHTTPServer):
    request_queue_size = 64
    """The default of 5 drops some of 8 simultaneous connections; the client's kernel tries again 1 s later."""


@contextmanager
def running(handler: Callable[..., BaseHTTPRequestHandler], port: int = 0) -> Iterator[str]:
    """The address of a server with this handler for the length of a `with` block."""
    http = PatientServer(("127.0.0.1", port), handler)
    thread = threading.Thread(target=http.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield f"http://127.0.0.1:{http.server_port}"
    finally:
        http.shutdown()
        thread.join()
        http.server_close()


@contextmanager
def serving(answer: Callable[[BaseHTTPRequestHandler], None], closing: threading.Event) -> Iterator[str]:
    """The address of a server for the length of a `with` block; at its end `closing` frees the answers that wait."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            try:
                answer(self)
            except ConnectionError:
                self.close_connection = True  # the client has been killed

        def log_message(self, *_: object) -> None:
            return

    with running(Handler) as address:
        try:
            yield address
        finally:
            closing.set()


def send(handler: BaseHTTPRequestHandler, content: bytes, attempt: int = 1, length: int | None = None) -> None:
    handler.send_response(200)
    handler.send_header("Content-Length", str(len(content) if length is None else length))
    handler.end_headers()
    handler.wfile.write(content)


def status(code: int, **headers: str) -> Respond:
    """Answers with this code and nothing else."""

    def respond(handler: BaseHTTPRequestHandler, content: bytes, attempt: int) -> None:
        handler.send_response(code)
        for name, value in ({"Content-Length": "0"} | headers).items():
            handler.send_header(name.replace("_", "-"), value)
        handler.end_headers()

    return respond


def without_proxy(patch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        patch.delenv(name, raising=False)


def files_under(root: Path) -> dict[str, bytes]:
    return {path.relative_to(root).as_posix(): path.read_bytes() for path in root.rglob("*") if path.is_file()}
