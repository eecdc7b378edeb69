"""Who is answered, and where: one rule for every address of the page, Gradio's and our own (docs/security.md)."""

import ipaddress
import json
import re
import socket
import sys
import traceback
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from app.page.flags import LOCAL_HOSTS

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

READ, WRITE = ("GET", "HEAD"), ("POST",)
ADDRESSES: tuple[tuple[tuple[str, ...], str], ...] = (
    (READ, r"/|/config/?|/theme\.css|/favicon\.ico|/robots\.txt"),
    (READ, r"/(static|assets|svelte)/.+"),
    (READ, r"/gradio_api/(startup-events|app_id|theme\.css|upload_progress|queue/data|heartbeat/\w+)"),
    (READ, r"/gradio_api/file=/.+"),
    (WRITE, r"/gradio_api/(queue/join|run/predict|cancel|reset|upload)/?"),
    (WRITE, r"/live/\w+(/end)?"),
    (READ, r"/in-browser(/.*)?"),
)
"""(methods, path): what the page uses. What else Gradio serves is not there (404): it fetches addresses, runs FFmpeg on
what a visitor names, or changes the page."""
UPLOAD = re.compile("/gradio_api/upload/?")
MAX_BODY = 2_000_000
"""Bytes of any request but an upload: a camera picture of 640x480 has 60 kB, the page's settings 2 kB."""
ENVELOPE = 100_000
"""Bytes of an upload beside the file."""

POLICY = "; ".join(
    (
        "default-src 'self'",
        # Gradio makes functions of the text of its event scripts
        "script-src 'self' 'unsafe-inline' 'unsafe-eval' blob:",
        "style-src 'self' 'unsafe-inline'",
        "img-src 'self' data: blob:",
        "media-src 'self' data: blob:",
        "font-src 'self' data:",
        "connect-src 'self' data: blob:",
        "worker-src 'self' blob:",
        "object-src 'none'",
        "base-uri 'self'",
        "form-action 'self'",
        "frame-ancestors 'none'",
    )
)
HEADERS = (
    (b"content-security-policy", POLICY.encode()),
    (b"x-frame-options", b"DENY"),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-resource-policy", b"same-origin"),
)
FRAMEWORKS = {"gradio", "fastapi", "starlette", "pydantic", "json"}
"""Packages that read what a visitor sent before our own code does, and repeat it in their refusals: NaN, half a
character."""
JSON = (b"content-type", b"application/json")


class AllowedHosts:
    """The names that the page answers to, without ports.

    A page on another machine's network is known by names that only its users know: an address in figures cannot be
    pointed elsewhere by a foreign name server (DNS rebinding), so those are taken; a name must be this machine's own,
    that of a share, or one given with --allow-host.
    """

    def __init__(self, local: bool, more: Iterable[str] = ()) -> None:
        self.local = local
        self._names = {*LOCAL_HOSTS, *(name.lower() for name in more)}
        if not local:
            self._names |= {socket.gethostname().lower(), socket.getfqdn().lower()}

    def add(self, address: str) -> None:
        """An address at which the page was published."""
        self._names |= {urlsplit(address).hostname or ""}

    def __contains__(self, host: str) -> bool:
        name = host_name(host)
        return name in self._names or (not self.local and is_numeric(name))


class Guard:
    """Middleware: refuses foreign names and sites, addresses that are not listed, and bodies that are too long."""

    def __init__(
        self, app: "ASGIApp", names: AllowedHosts, max_upload: int, refuse_upload: Callable[[int], str | None]
    ) -> None:
        """`refuse_upload(bytes)` says why an upload of that size is not taken now; None: it is."""
        self._app, self._names, self._max_upload, self._refuse_upload = app, names, max_upload, refuse_upload

    async def __call__(self, scope: "Scope", receive: "Receive", send: "Send") -> None:
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
        elif scope["type"] != "http":
            await send({"type": "websocket.close", "code": 1008})
        elif refusal := self._refusal(scope):
            await _refuse(send, *refusal)
        else:
            started = False

            async def sent(message: "Message") -> None:
                nonlocal started
                started = True
                await send(message)

            try:
                await self._app(scope, receive, _with_headers(sent))
            except Exception as error:
                ours = log_failure(error)
                if not started:
                    await _refuse(send, *((500, "something failed") if ours else (422, "the page cannot read that")))

    def _refusal(self, scope: "Scope") -> tuple[int, str] | None:
        """(status, reason), or None."""
        method, path = str(scope["method"]), str(scope["path"])
        headers = {name: value.decode("latin-1") for name, value in scope["headers"]}
        host, origin = headers.get(b"host", ""), headers.get(b"origin")
        if host not in self._names:
            return 421, "this page does not answer to that name; start it with --allow-host NAME"
        if origin is not None and origin.partition("://")[2] != host:
            return 403, "this address answers its own page only"
        if not any(method in methods and re.fullmatch(known, path) for methods, known in ADDRESSES):
            return 404, "not found"
        return self._refuse_body(path, headers) if method in WRITE else None

    def _refuse_body(self, path: str, headers: Mapping[bytes, str]) -> tuple[int, str] | None:
        """The server reads no more than the length that is announced."""
        length, upload = headers.get(b"content-length", ""), UPLOAD.fullmatch(path) is not None
        if not re.fullmatch("[0-9]{1,15}", length) or b"transfer-encoding" in headers:
            return 411, "say the length of the request"
        most = self._max_upload + ENVELOPE if upload else MAX_BODY
        if int(length) > most:
            return 413, f"more than {most // 10**6} MB"
        reason = self._refuse_upload(int(length)) if upload else None
        return None if reason is None else (507, reason)


async def _refuse(send: "Send", status: int, reason: str) -> None:
    await send({"type": "http.response.start", "status": status, "headers": [*HEADERS, JSON]})
    await send({"type": "http.response.body", "body": json.dumps({"error": reason}).encode()})


def _with_headers(send: "Send") -> "Send":
    async def sent(message: "Message") -> None:
        if message["type"] == "http.response.start":
            message["headers"] = [*message.get("headers", []), *HEADERS]
        await send(message)

    return sent


def log_failure(error: Exception) -> bool:
    """Logs what nobody foresaw, by its kind alone: a traceback would show what a visitor sent, or the name of a file.

    False where the frameworks failed, to which a request can say anything; True otherwise.
    """
    last = traceback.extract_tb(error.__traceback__)[-1]
    print(f"page: {type(error).__name__} in {last.name}", file=sys.stderr)
    return not FRAMEWORKS & set(Path(last.filename).parts)


def host_name(host: str) -> str:
    """The name in a Host header, without its port; empty where it is none."""
    try:
        return urlsplit(f"//{host}").hostname or ""
    except ValueError:  # "["
        return ""


def is_numeric(name: str) -> bool:
    """Whether it is an IP address in figures."""
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True
