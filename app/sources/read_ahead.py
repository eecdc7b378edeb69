"""Reading of a source in a thread of its own: files wait for the caller, live sources keep the newest frame."""

import threading
import time
from collections import deque
from collections.abc import Generator
from dataclasses import replace

from app.sources.frame_queue import FrameQueue
from app.sources.source import Source
from core.frame import Frame


def read_ahead(
    source: Source, capacity: int = 4, decode_ms: deque[float] | None = None
) -> Generator[Frame, None, None]:
    """Yields the source's frames, which a thread reads ahead.

    A file's reader waits while `capacity` frames are unread, so none is lost. A live source's frame replaces the unread
    one, which is counted in `source.losses["dropped_newer_frame"]`: a late picture is worth less than a missing one.
    The reader's exception is raised here, as the same object, after the frames before it. Closing the generator, in
    whatever way, stops the reader and waits for it. `decode_ms` receives the time that each frame took to arrive, in
    milliseconds.
    """

    def drop(dropped: Frame, newer: Frame) -> Frame:
        """The newer frame, which becomes a discontinuity if the dropped one was."""
        source.losses["dropped_newer_frame"] += 1
        return replace(newer, discontinuity=newer.discontinuity or dropped.discontinuity)

    queue = FrameQueue(1, drop) if source.info.live else FrameQueue[Frame](capacity)
    reader = threading.Thread(target=_read, args=(source, queue, decode_ms), name="frame-reader", daemon=True)
    reader.start()
    try:
        yield from queue
    finally:
        queue.stop()
        source.stop()
        reader.join()


def _read(source: Source, queue: FrameQueue[Frame], decode_ms: deque[float] | None) -> None:
    try:
        began = time.perf_counter()
        for frame in source:
            if decode_ms is not None:
                decode_ms.append((time.perf_counter() - began) * 1e3)
            if not queue.put(frame):
                break
            began = time.perf_counter()
    except BaseException as error:
        queue.finish(error)
    else:
        queue.finish()
