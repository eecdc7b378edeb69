"""The metrics of all cameras in the text format of Prometheus, served over HTTP. They contain no secret."""

import contextlib
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from steadyseg.app.scale.cameras.camera_file import Camera
from steadyseg.app.scale.cameras.state import CameraFigures
from steadyseg.core.errors import InputError
from steadyseg.core.system.hosts import LOCAL_HOSTS, AllowedHosts

MAX_CONNECTIONS, REQUEST_WITHIN_S = 16, 5.0
"""Number of connections at a time, each with a thread, and their limit in seconds; Prometheus needs a connection for
some milliseconds."""

METRICS = (
    ("up", "gauge", "up", "1 if a frame was segmented within the last silent_s seconds and nothing fails now."),
    ("frames_total", "counter", "frames", "Frames segmented."),
    ("dropped_total", "counter", "dropped", "Frames replaced by a newer one before they were segmented."),
    ("reconnections_total", "counter", "reconnections", "Times that the picture came back."),
    ("resets_total", "counter", "resets", "Times that the temporal mean was started anew or left out a frame of NaN."),
    ("restarts_total", "counter", "restarts", "Workers of the camera that died."),
    ("gap_seconds_total", "counter", "gap_s", "Seconds without frames because a worker had died."),
    ("frames_per_second", "gauge", "fps", "Frames segmented a second, over the last ten seconds."),
    ("sent_frames_per_second", "gauge", "sent_fps", "Frames that a network stream sends a second; 0: not known."),
    ("age_seconds", "gauge", "age_s", "Seconds from the latest frame's arrival to its maps."),
    ("silent_seconds", "gauge", "silent_s", "Seconds since the latest frame was segmented."),
    ("step_milliseconds", "gauge", "step_ms", "Processor time a frame."),
    ("confidence", "gauge", "confidence", "Mean over the pixels of the latest frame."),
    ("entropy", "gauge", "entropy", "Mean uncertainty of the latest frame, a share of ln K."),
    ("familiarity", "gauge", "familiarity", "Share of the network's training domain that is at least as novel."),
    ("ood_seconds", "gauge", "ood_s", "Seconds of another place than the network was trained for; 0: no alarm."),
    ("low_accuracy_seconds", "gauge", "low_s", "Seconds of a low expected accuracy; 0: it is not said."),
    ("expected_accuracy", "gauge", "expected_accuracy", "Share of the pixels that should be right."),
)
"""Name after `steadyseg_camera_`, type, field of the state and help text of each metric; None omits the line."""


def prometheus_text(cameras: Iterable[Camera], figures: Iterable[CameraFigures]) -> str:
    """The metrics in Prometheus's text format, version 0.0.4."""
    limits, lines = {camera.name: camera.silent_s for camera in cameras}, []
    known = [vars(one.state) | vars(one) for one in figures]
    for one in known:  # a camera that connects again has no trouble yet, and no picture
        one["up"] = int(not one["trouble"] and one["age_s"] is not None and one["silent_s"] <= limits[one["name"]])
    for name, kind, field, words in METRICS:
        lines += [f"# HELP steadyseg_camera_{name} {words}", f"# TYPE steadyseg_camera_{name} {kind}"]
        for values in known:
            if (value := values[field]) is not None:
                digits = value if isinstance(value, int) else f"{value:.9g}"
                lines.append(f'steadyseg_camera_{name}{{camera="{values["name"]}"}} {digits}')
    return "\n".join(lines) + "\n"


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

    The request's Host must be a name of this machine or in `allow`. Otherwise a foreign website could read the metrics
    through a visitor's browser (DNS rebinding).
    """

    def __init__(
        self, host: str, port: int, text: Callable[[], str], trouble: Callable[[], str] = str, allow: Iterable[str] = ()
    ) -> None:
        """`trouble` returns why the metrics are out of date (the answer is then 503), or an empty text."""
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
                    body = text().encode()
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
