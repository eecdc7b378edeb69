"""The two addresses of the live stream: a frame goes in by POST, and its two pictures are the answer.

Gradio's own image streaming carries pictures as base64 in JSON, through its queue and a Svelte component. It reports
neither the frame's age nor the number of dropped frames. Here every request is one frame. A browser sends at most two
frames before an answer, so a slow network lowers the frame rate but does not delay the pictures.
"""

import asyncio
import json
import struct
import time
from collections.abc import Mapping
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any

from steadyseg.app.page.live.live_stream import LivePictures
from steadyseg.app.page.live.live_worker import LiveWorkers, Request
from steadyseg.app.page.parts.settings import settings_from
from steadyseg.core.errors import InputError

if TYPE_CHECKING:
    from starlette.requests import Request as WebRequest
    from starlette.responses import Response
    from starlette.routing import Route


def live_routes(workers: LiveWorkers, models: Mapping[str, str]) -> "list[Route]":
    """The routes POST /live/KEY and /live/KEY/end. `models`: name on the page -> model (`offered_models`)."""
    from starlette.responses import JSONResponse, Response
    from starlette.routing import Route

    async def answer(request: "WebRequest") -> "Response":
        arrived_s = time.perf_counter()
        try:
            record, picture = unpack(await request.body())
            frame = Request(
                settings_from(record, models), picture or None, capture_time(record, arrived_s), arrived_s, Future()
            )
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


def unpack(body: bytes) -> tuple[dict[str, Any], bytes]:
    """Splits a body into (settings, JPEG or nothing): length of the JSON (4 bytes, little endian), JSON, picture."""
    length = struct.unpack_from("<I", body)[0] if len(body) >= 4 else len(body)
    try:
        record = json.loads(body[4 : 4 + length])
    except (ValueError, RecursionError) as error:
        raise InputError("the page sent settings that cannot be read; reload it") from error
    if not isinstance(record, dict):
        raise InputError("the page sent settings that cannot be read; reload it")
    return record, body[4 + length :]


def capture_time(record: dict[str, Any], arrived_s: float) -> float:
    """Capture time in seconds by the browser's clock, or the arrival time if the browser gives none."""
    value = record.get("captured_ms")
    return value / 1e3 if isinstance(value, (int, float)) and abs(value) < 1e15 else arrived_s


def pack(pictures: LivePictures) -> bytes:
    """The body of an answer: lengths of the facts and of the left picture (4 bytes each, little endian), facts as
    JSON, left picture, right picture."""
    facts = json.dumps(pictures.facts).encode()
    return b"".join([struct.pack("<II", len(facts), len(pictures.left)), facts, pictures.left, pictures.right])
