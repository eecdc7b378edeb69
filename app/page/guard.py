"""Access control of the page (docs/reference/security.md).

`Guard` checks requests to all addresses, Gradio's and our own. `guard_events` checks the inputs of all events.
"""

import json
import re
import sys
import traceback
from collections.abc import Mapping
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

from steadyseg.app.page.parts.sessions import require_upload
from steadyseg.core.errors import InputError
from steadyseg.core.system.hosts import AllowedHosts

if TYPE_CHECKING:
    import gradio as gr
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

READ, WRITE = ("GET", "HEAD"), ("POST",)
IN_BROWSER = "/in-browser"
"""Address of the page that computes in the browser."""
ADDRESSES: tuple[tuple[tuple[str, ...], str], ...] = (
    (READ, r"/|/config/?|/theme\.css|/favicon\.ico|/robots\.txt"),
    (READ, r"/(static|assets|svelte)/.+"),
    (READ, r"/gradio_api/(startup-events|app_id|theme\.css|upload_progress|queue/data|heartbeat/\w+)"),
    (READ, r"/gradio_api/file=/.+"),
    (WRITE, r"/gradio_api/(queue/join|run/predict|cancel|reset)/?|/gradio_api/upload"),
    (WRITE, r"/live/[0-9a-f]{32}(/end)?"),  # the key that a browser draws
    (READ, rf"{IN_BROWSER}(/.*)?"),
)
"""(methods, path) of the addresses that the page uses.

All other addresses answer 404: through Gradio's, a visitor could fetch addresses, run FFmpeg on any file, or change the
page.
"""
UPLOAD = "/gradio_api/upload"
EVENT = re.compile("/gradio_api/(queue/join|run/predict|cancel)/?")
KEY = re.compile(r"[\w-]{1,40}", re.ASCII)
"""A session's hash: Gradio's script draws 11 letters and digits, its Python client a UUID. A lone surrogate in the hash
would stay in Gradio's statistics, and every later event of any visitor would fail."""
MAX_EVENT, MAX_PICTURE, MAX_QUERY = 32_000, 1_000_000, 1000
"""Bytes of an event, of a live frame with its settings, and of an address behind its `?`. The page's largest event has
1 kB, a camera picture of 640x360 60 kB (pure noise 280), and an address 60 bytes."""
ENVELOPE = 100_000
"""Bytes of an upload besides the file."""

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
ISOLATION = (
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-embedder-policy", b"require-corp"),
)
"""Headers that threads of WebAssembly need. They isolate the page from all others."""
FRAMEWORKS = {"gradio", "fastapi", "starlette", "pydantic", "json"}
"""Packages that read a visitor's values, such as NaN or a lone surrogate, before the page's own code does. Their errors
repeat the values."""
JSON = (b"content-type", b"application/json")


class Guard:
    """Middleware that refuses foreign hosts and sites, addresses that are not listed, and bodies that are too long."""

    def __init__(self, app: "ASGIApp", names: AllowedHosts, max_upload: int) -> None:
        """`max_upload`: bytes of the largest upload."""
        self._app, self._names, self._max_upload = app, names, max_upload

    async def __call__(self, scope: "Scope", receive: "Receive", send: "Send") -> None:
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
        elif scope["type"] != "http":
            await send({"type": "websocket.close", "code": 1008})
        elif refusal := self._refusal(scope):
            await refuse(send, *refusal)
        else:
            headers = (*HEADERS, *ISOLATION) if str(scope["path"]).startswith(IN_BROWSER) else HEADERS
            started = False

            async def sent(message: "Message") -> None:
                nonlocal started
                started = True
                if message["type"] == "http.response.start":
                    message["headers"] = [*message.get("headers", []), *headers]
                await send(message)

            try:
                if EVENT.fullmatch(str(scope["path"])):
                    from starlette.requests import ClientDisconnect, Request

                    try:
                        body = await Request(scope, receive).body()
                    except ClientDisconnect:
                        return
                    if not names_session(body):
                        return await refuse(send, 422, "the page cannot read that")
                    receive = replay(body, receive)
                await self._app(scope, receive, sent)
            except Exception as error:
                ours = log_failure(error)
                if not started:
                    await refuse(send, *((500, "something failed") if ours else (422, "the page cannot read that")))

    def _refusal(self, scope: "Scope") -> tuple[int, str] | None:
        """(status, reason) of a refusal, or None."""
        method, path = str(scope["method"]), str(scope["path"])
        headers = {name: value.decode("latin-1") for name, value in scope["headers"]}
        host, origin = headers.get(b"host", ""), headers.get(b"origin")
        if host not in self._names:
            return 421, "this page does not answer to that name; start it with --allow-host NAME"
        if origin is not None and origin.partition("://")[2] != host:
            return 403, "this address answers its own page only"
        if not any(method in methods and re.fullmatch(pattern, path) for methods, pattern in ADDRESSES):
            return 404, "not found"
        if len(scope["query_string"]) > MAX_QUERY:
            return 414, "too long an address"
        return self._refuse_body(path, headers) if method in WRITE else None

    def _refuse_body(self, path: str, headers: Mapping[bytes, str]) -> tuple[int, str] | None:
        """(status, reason) if the announced length is missing or too large. The server reads no further than it."""
        length = headers.get(b"content-length", "")
        if not re.fullmatch("[0-9]{1,15}", length) or b"transfer-encoding" in headers:
            return 411, "say the length of the request"
        limit = MAX_PICTURE if path.startswith("/live/") else MAX_EVENT
        if path == UPLOAD:
            limit = self._max_upload + ENVELOPE
        return (413, f"more than {limit / 1e6:g} MB") if int(length) > limit else None


def names_session(body: bytes) -> bool:
    """True if the JSON of an event has a session's hash."""
    try:
        return KEY.fullmatch(json.loads(body)["session_hash"]) is not None
    except (ValueError, KeyError, TypeError, RecursionError):
        return False


def replay(body: bytes, receive: "Receive") -> "Receive":
    """Returns an ASGI `receive` that first gives the body that was read already, then passes on later messages."""
    waiting = [body]

    async def received() -> "Message":
        return {"type": "http.request", "body": waiting.pop(), "more_body": False} if waiting else await receive()

    return received


async def refuse(send: "Send", status: int, reason: str) -> None:
    """Answers with a status and a reason, as JSON."""
    await send({"type": "http.response.start", "status": status, "headers": [*HEADERS, JSON]})
    await send({"type": "http.response.body", "body": json.dumps({"error": reason}).encode()})


def log_failure(error: Exception) -> bool:
    """Logs only the kind of an unforeseen error: a traceback would show a visitor's values or the name of a file.

    Returns False for errors inside the frameworks, which any malformed request can cause, and True otherwise.
    """
    last = traceback.extract_tb(error.__traceback__)[-1]
    print(f"page: {type(error).__name__} in {last.name}", file=sys.stderr)
    return not FRAMEWORKS & set(Path(last.filename).parts)


def guard_events(blocks: "gr.Blocks", uploads: Path) -> None:
    """Checks the inputs of every event of these blocks and shows its errors as messages.

    If an input of any component names an address, Gradio fetches that address before the event's own function runs. So
    inputs are checked here first. Gradio would also print a traceback with a visitor's values for each error. Here, the
    log gets only the kind of an unforeseen error.
    """
    import gradio as gr

    process = blocks.process_api

    async def process_api(block_fn: Any, inputs: Any, *args: Any, **kwargs: Any) -> dict[str, Any]:
        try:
            require_uploads(inputs, uploads)
            return await process(block_fn, inputs, *args, **kwargs)
        except Exception as error:
            if isinstance(error, InputError):
                text = escape(str(error))
            elif isinstance(error, gr.Error) or not log_failure(error):
                # A value that no control has, or a file that is no upload.
                text = "the page cannot read that; reload it"
            else:
                text = "something failed in this file"
            raise gr.Error(text, title="That did not work", print_exception=False) from error

    blocks.process_api = process_api  # type: ignore[method-assign]


def require_uploads(inputs: Any, folder: Path) -> None:
    """Raises InputError for a file among the values of an event, at any depth, that is not an upload in `folder`.

    Every dictionary with a text `path` or `url` counts as a file. Gradio knows several forms, and no control of the
    page has such values.
    """
    waiting = [inputs]
    while waiting:
        value = waiting.pop()
        if isinstance(value, dict):
            if isinstance(value.get("path"), str):
                require_upload(value["path"], folder)
            elif isinstance(value.get("url"), str):
                raise InputError("this file was not uploaded here; choose it again")
            waiting += value.values()
        elif isinstance(value, list | tuple):
            waiting += value
