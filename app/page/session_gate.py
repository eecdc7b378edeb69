"""The gate before Gradio: it reads the bodies of all requests but uploads, and admits their sessions."""

import asyncio
import contextlib
import json
import re
import time
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING
from urllib.parse import parse_qs

from steadyseg.app.page.guard import UPLOAD, refuse
from steadyseg.app.page.visitors.disk import Disk
from steadyseg.app.page.visitors.gradio_memory import GradioMemory, forget_upload
from steadyseg.app.page.visitors.sessions import Sessions
from steadyseg.core.errors import InputError

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

EVENT = re.compile("/gradio_api/(queue/join|run/predict|cancel)/?")
HEARTBEAT, MESSAGES, PROGRESS = "/gradio_api/heartbeat/", "/gradio_api/queue/data", "/gradio_api/upload_progress"
BODIES = 64_000_000
"""Bytes of all bodies that are held at once: 64 live streams with two pictures each on the way hold 8 MB."""
BODY_S = 30.0
"""Longest time for one of these bodies to arrive."""
GRACE_S = 30.0
"""Seconds after which a job ends, and its messages go, if nobody has fetched them: a page fetches them at once."""
SWEEP_S = 60.0


class SessionGate:
    """Middleware that holds every request to the limits of sessions and memory before Gradio takes anything from it."""

    def __init__(self, app: "ASGIApp", sessions: Sessions, memory: GradioMemory, disk: Disk) -> None:
        self._app, self._sessions, self._memory, self._disk = app, sessions, memory, disk
        self._held = 0

    async def __call__(self, scope: "Scope", receive: "Receive", send: "Send") -> None:
        path = str(scope.get("path", ""))
        try:
            if scope["type"] == "lifespan":
                async with self._tidied():
                    await self._app(scope, receive, send)
            elif scope["method"] == "POST" and path != UPLOAD:
                await self._post(path, scope, receive, send)
            else:
                await self._get(path, scope, receive, send)
        except InputError as error:
            await refuse(send, 503, str(error))

    async def _post(self, path: str, scope: "Scope", receive: "Receive", send: "Send") -> None:
        """Passes on a request once its body is there whole, and its session, if it names one, is admitted."""
        length = int(dict(scope["headers"])[b"content-length"])  # the guard has checked it
        if self._held + length > BODIES:
            raise InputError("the page is busy; try again in a moment")
        self._held += length
        try:
            try:
                async with asyncio.timeout(BODY_S):
                    body = await read_body(receive)
            except TimeoutError:
                return await refuse(send, 408, "the request is too slow")
            if EVENT.fullmatch(path):
                key = session_of(body)
                if key is None:
                    return await refuse(send, 422, "the page cannot read that")
                self._admit(key, joins="join" in path)
            await self._app(scope, replay(body, receive), send)
        finally:
            self._held -= length

    def _admit(self, key: str, joins: bool) -> None:
        session = self._sessions.admit(key)
        if joins:
            if self._memory.is_full(key):
                raise InputError("this page asks for too much at once; reload it")
            session.unheard_s = time.monotonic()
            asyncio.get_running_loop().call_later(GRACE_S, self._end_unheard, key)

    async def _get(self, path: str, scope: "Scope", receive: "Receive", send: "Send") -> None:
        """Passes on a request for reading; a session counts as connected for as long as its answer is open."""
        query = {name: values[-1] for name, values in parse_qs(scope["query_string"].decode("latin-1")).items()}
        if path == MESSAGES:
            try:
                with self._sessions.connection(key := query.get("session_hash", ""), listens=True):
                    await self._app(scope, receive, send)
            finally:
                asyncio.get_running_loop().call_later(GRACE_S, self._end_unheard, key)
        elif path.startswith(HEARTBEAT):
            with self._sessions.connection(path.removeprefix(HEARTBEAT), listens=False):
                await self._app(scope, receive, send)
        else:
            await self._app(scope, receive, send)
            if path == PROGRESS:
                forget_upload(query.get("upload_id", ""))

    def _end_unheard(self, key: str) -> None:
        """Ends the jobs of a session that nobody listens to any more."""
        if key in self._sessions:
            session = self._sessions.find(key)
            if not session.listeners and time.monotonic() - session.unheard_s > 0.9 * GRACE_S:
                session.stop_reason = "stopped"
                self._memory.drop_events(key)

    @contextlib.asynccontextmanager
    async def _tidied(self) -> AsyncIterator[None]:
        """A context in which unused sessions and files are removed once a minute."""

        async def tidy() -> None:
            while True:
                await asyncio.sleep(SWEEP_S)
                self._sessions.expire()
                await asyncio.to_thread(self._disk.sweep)

        task = asyncio.create_task(tidy())
        try:
            yield
        finally:
            task.cancel()


def session_of(body: bytes) -> str | None:
    """The session's hash in the JSON of an event; None where there is none."""
    try:
        key = json.loads(body)["session_hash"]
    except (ValueError, KeyError, TypeError, RecursionError):
        return None
    return key if isinstance(key, str) else None


async def read_body(receive: "Receive") -> bytes:
    """The whole body of a request."""
    parts = []
    while (message := await receive())["type"] == "http.request":
        parts.append(message.get("body", b""))
        if not message.get("more_body", False):
            break
    return b"".join(parts)


def replay(body: bytes, receive: "Receive") -> "Receive":
    """Returns an ASGI `receive` that first gives the body that was read already, then passes on later messages."""
    waiting = [body]

    async def received() -> "Message":
        return {"type": "http.request", "body": waiting.pop(), "more_body": False} if waiting else await receive()

    return received
