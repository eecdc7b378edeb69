"""The figures of all cameras in the text format of Prometheus, served over HTTP. They contain no secret."""

import contextlib
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from app.scale.cameras.state import CameraFigures
from core.errors import InputError
from core.system.hosts import LOCAL_HOSTS, AllowedHosts

MAX_CONNECTIONS, REQUEST_WITHIN_S = 16, 5.0
"""Connections at a time, each with a thread, and the seconds after which one is ended; Prometheus needs one for some
milliseconds."""

METRICS: tuple[tuple[str, str, str, Callable[[CameraFigures], float | None]], ...] = (
    ("up", "gauge", "1 while frames come and are segmented.", lambda one: float(not one.state.trouble)),
    ("frames_total", "counter", "Frames segmented.", lambda one: one.state.frames),
    (
        "dropped_total",
        "counter",
        "Frames replaced by a newer one before they were segmented.",
        lambda one: one.state.dropped,
    ),
    ("reconnections_total", "counter", "Times that the picture came back.", lambda one: one.state.reconnections),
    ("resets_total", "counter", "Times that the temporal mean was started anew.", lambda one: one.state.resets),
    ("restarts_total", "counter", "Workers of the camera that died.", lambda one: one.restarts),
    ("gap_seconds_total", "counter", "Time lost to dead workers.", lambda one: one.gap_s),
    ("frames_per_second", "gauge", "Segmented over the last ten seconds.", lambda one: one.state.fps),
    ("age_seconds", "gauge", "From a frame's arrival to its maps.", lambda one: one.state.age_s),
    ("silent_seconds", "gauge", "Since the latest frame was segmented.", lambda one: one.state.silent_s),
    ("step_milliseconds", "gauge", "Of the processor, a frame.", lambda one: one.state.step_ms),
    ("confidence", "gauge", "Mean over the pixels of the latest frame.", lambda one: one.state.confidence),
    ("entropy", "gauge", "Mean uncertainty of the latest frame, a share of ln K.", lambda one: one.state.entropy),
    (
        "novelty",
        "gauge",
        "Share of the network's training domain that is at least as novel.",
        lambda one: one.state.novelty,
    ),
    ("novel_seconds", "gauge", "For how long every frame has been novel.", lambda one: one.state.novel_s),
    (
        "expected_accuracy",
        "gauge",
        "Share of the pixels that should be right.",
        lambda one: one.state.expected_accuracy,
    ),
)
"""Name after `steadyseg_camera_`, type, help text and value of each metric; a value of None omits the line."""


def prometheus_text(cameras: Iterable[CameraFigures]) -> str:
    """The figures in Prometheus's text format, version 0.0.4."""
    known = list(cameras)
    lines = []
    for name, kind, words, value_of in METRICS:
        lines += [f"# HELP steadyseg_camera_{name} {words}", f"# TYPE steadyseg_camera_{name} {kind}"]
        for one in known:
            value = value_of(one)
            if value is not None:
                lines.append(f'steadyseg_camera_{name}{{camera="{one.state.name}"}} {_digits(value)}')
    return "\n".join(lines) + "\n"


def _digits(value: float) -> str:
    return str(value) if isinstance(value, int) else f"{value:.9g}"


class _Server(ThreadingHTTPServer):
    """A server of either IP version whose connections are few and short."""

    def __init__(self, host: str, port: int, handler: type[BaseHTTPRequestHandler]) -> None:
        self.address_family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        self._since: dict[Any, float] = {}
        super().__init__((host, port), handler)

    def process_request(self, request: Any, client_address: Any) -> None:
        """Serves the request in a thread; closes the connection if there are many."""
        if len(self._since) >= MAX_CONNECTIONS:
            self.shutdown_request(request)
            return
        self._since[request] = time.monotonic()
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        """Closes a connection, whose thread has ended or never began."""
        self._since.pop(request, None)
        super().shutdown_request(request)

    def service_actions(self) -> None:
        """Ends connections that have lasted too long; called ten times a second."""
        for request, since_s in list(self._since.items()):
            if time.monotonic() - since_s > REQUEST_WITHIN_S:
                with contextlib.suppress(OSError):
                    request.shutdown(socket.SHUT_RDWR)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Prints a traceback, unless the client closed the connection."""
        if not isinstance(sys.exception(), OSError):
            super().handle_error(request, client_address)


class MetricsServer:
    """A server that answers GET /metrics until it is closed. Raises InputError if it cannot listen at the address.

    Host must be a name of this machine or one of `allow`: otherwise a website elsewhere could read the figures through
    a visitor's browser (DNS rebinding).
    """

    def __init__(
        self,
        host: str,
        port: int,
        text: Callable[[], str],
        trouble: Callable[[], str] = str,
        allow: Iterable[str] = (),
    ) -> None:
        """`trouble` returns the reason why the figures are out of date, or an empty text; with a reason the answer is
        503."""
        hosts = AllowedHosts(host in LOCAL_HOSTS, (host, *allow))

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                if self.headers.get("Host", "") not in hosts:
                    self.send_error(403, "this name is not served; add it with --allow-host")
                elif self.path != "/metrics":
                    self.send_error(404)
                elif late := trouble():
                    self.send_error(503, late)
                else:
                    self._answer(text().encode())

            def _answer(self, body: bytes) -> None:
                self.send_response(200)
                self.send_header("Content-Type", "text/plain; version=0.0.4")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: object) -> None:
                return

        try:
            self._server = _Server(host, port, Handler)
        except (OSError, OverflowError, UnicodeError) as error:
            reason = getattr(error, "strerror", None) or str(error)
            raise InputError(f"--host {host} --port {port}: cannot be listened at ({reason}); choose others") from error
        shown = f"[{host}]" if ":" in host else host
        self.address = f"http://{shown}:{self._server.server_port}/metrics"
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.1}, daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()
