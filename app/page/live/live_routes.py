"""The two addresses of the live stream: a frame goes in by POST, and its two pictures are the answer.

Gradio's own image streaming carries pictures as base64 in JSON, through its queue and a Svelte component. It reports
neither the frame's age nor the number of dropped frames. Here every request is one frame. A browser sends at most two
frames before an answer, so a slow network lowers the frame rate but does not delay the pictures.
"""

import asyncio
import contextlib
import json
import struct
import time
from collections.abc import Mapping
from concurrent.futures import Future
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from steadyseg.app.page.live.live_stream import LivePictures
from steadyseg.app.page.live.live_worker import LiveWorkers, Request
from steadyseg.app.page.parts.settings import Settings, settings_from
from steadyseg.core.errors import InputError

if TYPE_CHECKING:
    from starlette.requests import Request as WebRequest
    from starlette.responses import Response
    from starlette.routing import Route

HEAD = struct.Struct("<Id")
"""Begins a body: the bytes of the settings, and the time of the picture in ms by the browser's clock."""
MAX_SETTINGS = 10_000
"""Bytes of the settings; the page's have 400."""


def live_routes(workers: LiveWorkers, models: Mapping[str, str]) -> "list[Route]":
    """The routes POST /live/KEY and /live/KEY/end. `models`: name on the page -> model (`offered_models`)."""
    from starlette.responses import JSONResponse, Response
    from starlette.routing import Route

    @lru_cache(maxsize=64)  # a browser sends the same settings with each frame, until its visitor changes them
    def read_settings(text: bytes) -> Settings:
        return settings_from(read_record(text), models)

    async def answer(request: "WebRequest") -> "Response":
        arrived_s = time.perf_counter()
        try:
            text, captured_s, picture = unpack(await request.body())
            if not abs(captured_s) < 1e12:  # no time, or not a number
                captured_s = arrived_s
            frame = Request(read_settings(text), picture or None, captured_s, arrived_s, Future())
            workers.offer(request.path_params["key"], frame)
            pictures = await asyncio.wrap_future(frame.answer)
        except InputError as error:
            return JSONResponse({"error": str(error)}, 422)
        if pictures is None:
            return Response(status_code=204)
        return Response(pack(pictures), media_type="application/octet-stream", headers={"Cache-Control": "no-store"})

    async def end(request: "WebRequest") -> "Response":
        workers.end(request.path_params["key"])
        return Response(status_code=204)

    return [Route("/live/{key}", answer, methods=["POST"]), Route("/live/{key}/end", end, methods=["POST"])]


def unpack(body: bytes) -> tuple[bytes, float, bytes]:
    """Splits a body into (settings as JSON, capture time in seconds, JPEG or nothing); it begins with `HEAD`."""
    length, captured_ms = HEAD.unpack_from(body) if len(body) >= HEAD.size else (0, 0.0)
    end = HEAD.size + length
    return body[HEAD.size : end], captured_ms / 1e3, body[end:]


def read_record(text: bytes) -> dict[str, Any]:
    """Reads the settings of a frame; InputError for anything but a JSON object."""
    with contextlib.suppress(ValueError, RecursionError):
        if len(text) <= MAX_SETTINGS and isinstance(record := json.loads(text), dict):
            return record
    raise InputError("the page sent settings that cannot be read; reload it")


def pack(pictures: LivePictures) -> bytes:
    """The body of an answer: lengths of the facts and of the left picture (4 bytes each, little endian), facts as
    JSON, left picture, right picture."""
    facts = json.dumps(pictures.facts).encode()
    return b"".join([struct.pack("<II", len(facts), len(pictures.left)), facts, pictures.left, pictures.right])
