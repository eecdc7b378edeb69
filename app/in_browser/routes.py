"""Routes of `steadyseg demo --in-browser`: the folder of the page beside the Gradio page."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from app.in_browser.site import is_site
from core.errors import InputError

if TYPE_CHECKING:
    from starlette.routing import BaseRoute
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

ADDRESS = "/in-browser"
LINK = "<a href='in-browser/' target='_blank'>run it in this browser instead</a>"
ISOLATION = (
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-embedder-policy", b"require-corp"),
)
"""Headers that threads of WebAssembly need: they share memory with no other page."""


def check_site(folder: Path | None) -> None:
    """Raises InputError for a folder that `steadyseg export` did not write."""
    if folder is not None and not is_site(folder):
        raise InputError(
            f"--in-browser {folder}: not a folder of `steadyseg export MODEL --target web -o DIR`; write one with it"
        )


def tab_routes(folder: Path | None) -> "list[BaseRoute]":
    """Returns the route of the folder: files below it, and no link that leads out of it."""
    if folder is None:
        return []
    from starlette.routing import Mount
    from starlette.staticfiles import StaticFiles

    return [Mount(ADDRESS, isolated(StaticFiles(directory=folder, html=True)))]


def isolated(app: "ASGIApp") -> "ASGIApp":
    """Wraps an application to add the headers of isolation to its answers."""

    async def answer(scope: "Scope", receive: "Receive", send: "Send") -> None:
        await app(scope, receive, with_headers(send, ISOLATION))

    return answer


def with_headers(send: "Send", headers: Sequence[tuple[bytes, bytes]]) -> "Send":
    """Wraps the function that sends an answer to add headers to it."""

    async def sent(message: "Message") -> None:
        if message["type"] == "http.response.start":
            message["headers"] = [*message.get("headers", []), *headers]
        await send(message)

    return sent
