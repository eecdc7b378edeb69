"""The address that takes uploads, in place of Gradio's: one file a request, its bytes reserved before they are read.

Gradio's own route keeps parts without a file name in memory whole, however large they are (180 MB took 431 MB), and
leaves parts of broken uploads on the disk.
"""

import asyncio
import os
import re
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import TYPE_CHECKING

from steadyseg.app.page.visitors.disk import Disk
from steadyseg.app.page.visitors.gradio_memory import forget_upload
from steadyseg.core.errors import InputError

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.routing import Route

ADDRESS = "/gradio_api/upload"
MAX_UPLOADS = 32
"""Uploads at once; each takes a megabyte of memory or two while it is read."""
SILENCE_S = 30.0
"""Longest wait for the next bytes of an upload."""
MIN_RATE = 50_000
"""Bytes a second below which an upload is ended, after a first minute: 500 MB may take 2.8 hours."""
UNUSUAL, NAME_LENGTH = re.compile(r"[^\w.+ ()-]"), 60
"""Characters that become `_` in a stored name, and its length: file systems end at 255 bytes, 4 a character."""


def upload_route(disk: Disk) -> "Route":
    """The route POST /gradio_api/upload. It answers with a list of one path, as Gradio's scripts expect."""
    from starlette.responses import JSONResponse
    from starlette.routing import Route

    at_once = 0

    async def answer(request: "Request") -> "Response":
        nonlocal at_once
        upload_id = request.query_params.get("upload_id")
        at_once += 1
        refused = 507
        try:
            if at_once > MAX_UPLOADS:
                raise InputError("too many files are being uploaded; try again in a minute")
            length = int(request.headers["content-length"])
            with disk.reserve(length) as folder:
                refused = 422
                async with asyncio.timeout(60 + length / MIN_RATE):
                    stored = await store(request, folder, disk, upload_id)
            return JSONResponse([str(stored)])
        except InputError as error:
            return JSONResponse({"error": str(error)}, refused)
        except TimeoutError:
            return JSONResponse({"error": "the upload is too slow"}, 408)
        finally:
            at_once -= 1
            if upload_id is not None:
                # Who shows the progress asks 20 times a second, and is told of the end first.
                asyncio.get_running_loop().call_later(5, forget_upload, upload_id)

    return Route(ADDRESS, answer, methods=["POST"])


async def store(request: "Request", folder: Path, disk: Disk, upload_id: str | None) -> Path:
    """Reads one file into `folder`, then moves it to its place: DISK/SHA-256/NAME. Raises InputError for other bodies,
    TimeoutError if the next piece takes too long."""
    from gradio.route_utils import GradioMultiPartParser, GradioUploadFile
    from gradio.routes import file_upload_statuses
    from starlette.formparsers import MultiPartException

    if upload_id is not None:
        file_upload_statuses.track(upload_id)
    parser = GradioMultiPartParser(
        request.headers,
        without_silence(request),
        max_files=1,
        max_fields=0,
        upload_dir=folder,
        max_file_size=disk.max_upload,
        upload_id=upload_id,
        upload_progress=None if upload_id is None else file_upload_statuses,
    )
    try:
        file = (await parser.parse()).get("files")
    except (MultiPartException, KeyError) as error:
        raise InputError(f"not one file of at most {disk.max_upload // 10**6} MB") from error
    if not isinstance(file, GradioUploadFile):
        raise InputError("no file was sent")
    name = UNUSUAL.sub("_", file.filename or "")[-NAME_LENGTH:].strip(" .") or "file"
    place = disk.folder / file.sha.hexdigest() / name
    place.parent.mkdir(exist_ok=True)
    file.file.close()
    os.replace(str(file.file.name), place)
    return place


async def without_silence(request: "Request") -> AsyncGenerator[bytes, None]:
    """The pieces of a body. Raises TimeoutError where the next one does not come."""
    pieces = request.stream()
    while True:
        async with asyncio.timeout(SILENCE_S):
            piece = await anext(pieces, None)
        if piece is None:
            return
        yield piece
