"""The folder of the page, served by `steadyseg demo --in-browser` beside the Gradio page."""

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
"""What WebAssembly's threads need: memory is shared with nobody else's page."""


def check_site(folder: Path | None) -> None:
    """InputError for a folder that is none of ours."""
    if folder is not None and not is_site(folder):
        raise InputError(
            f"--in-browser {folder}: not a folder of `steadyseg export MODEL --target web -o DIR`; write one with it"
        )


def tab_routes(folder: Path | None) -> "list[BaseRoute]":
    """What is served of the folder: files below it, and nothing that a link leads out to."""
    if folder is None:
        return []
    from starlette.routing import Mount
    from starlette.staticfiles import StaticFiles

    return [Mount(ADDRESS, isolated(StaticFiles(directory=folder, html=True)))]


def isolated(app: "ASGIApp") -> "ASGIApp":
    """The same answers with the headers of isolation."""

    async def answer(scope: "Scope", receive: "Receive", send: "Send") -> None:
        async def sent(message: "Message") -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message.get("headers", []), *ISOLATION]
            await send(message)

        await app(scope, receive, sent)

    return answer
