"""Live streams outside the event loop: a thread and a queue of one frame for each visitor, closed on request or when
idle.
"""

import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass
from functools import partial

import numpy as np

from steadyseg.app.page.live.camera_picture import camera_picture
from steadyseg.app.page.live.live_stream import LivePictures, LiveStream
from steadyseg.app.page.live.source_feed import Subscription
from steadyseg.app.page.parts.network_pool import Lease, NetworkPool, OpenMethod
from steadyseg.app.page.parts.settings import MethodSettings, Settings
from steadyseg.app.sources.read_ahead import FrameQueue
from steadyseg.core.errors import InputError
from steadyseg.core.frame import Frame
from steadyseg.core.segmenter import Segmenter
from steadyseg.core.system.machine import trim_memory

IDLE_S = 20.0
"""A visitor counts as gone after this many seconds without a frame."""


@dataclass(frozen=True)
class Request:
    """One frame that a browser asks to segment."""

    settings: Settings
    picture: bytes | None
    """JPEG; if None, the next picture of the server's own source."""
    captured_s: float
    """Capture time by the browser's clock."""
    arrived_s: float
    answer: "Future[LivePictures | None]"
    """The answer; None if a newer frame took its place."""


def resolve_future(answer: "Future[LivePictures | None]", result: LivePictures | InputError | None) -> None:
    """Gives the answer, unless the waiting browser is gone."""
    if not answer.set_running_or_notify_cancel():
        return
    if isinstance(result, InputError):
        answer.set_exception(result)
    else:
        answer.set_result(result)


class LiveWorker:
    """The thread of one visitor. Every failure in it becomes an answer to this visitor alone.

    A daemon would compute on while Python ends, and its native code would abort the process.
    """

    def __init__(
        self,
        pool: NetworkPool,
        open_feed: Callable[[], Subscription] | None,
        on_end: Callable[["LiveWorker"], None],
        idle_s: float,
        first: Request,
    ) -> None:
        self._pool, self._open_feed, self._on_end, self._idle_s = pool, open_feed, on_end, idle_s
        self._feed: Subscription | None = None
        self._queue = FrameQueue(1, self._drop)
        self._queue.put(first)
        self._thread = threading.Thread(target=self._run, name="live", daemon=False)
        self._thread.start()

    def offer(self, request: Request) -> bool:
        """Queues a frame; a frame that still waits is answered with None. Returns False if the worker has ended."""
        return self._queue.put(request)

    def end(self) -> None:
        """Asks the worker to end; a waiting frame is answered with None."""
        for request in self._queue.stop():
            resolve_future(request.answer, None)

    def join(self, timeout_s: float) -> None:
        """Waits for the end of the thread."""
        self._thread.join(timeout_s)

    def _run(self) -> None:
        stream = LiveStream(self._pool)
        try:
            while (request := self._queue.take(self._idle_s)) is not None:
                self._answer(stream, request)
        finally:
            self.end()  # answers a frame that came just when the worker became idle
            stream.close()
            if self._feed is not None:
                self._feed.close()
            self._on_end(self)
            trim_memory()

    def _drop(self, older: Request, newer: Request) -> Request:
        resolve_future(older.answer, None)
        return newer

    def _answer(self, stream: LiveStream, request: Request) -> None:
        try:
            image, time_s, arrived_s = self._picture(request)
            pictures = stream.step(image, request.settings, time_s)
            now_s = time.perf_counter()
            pictures.facts["server_ms"] = round((now_s - request.arrived_s) * 1e3, 1)
            pictures.facts["age_ms"] = round((now_s - arrived_s) * 1e3, 1)
            pictures.facts["given"] = self._feed.given if self._feed else None
        except InputError as error:
            resolve_future(request.answer, error)
        except Exception as error:  # its text may hold a visitor's values or the name of a file
            print(f"live: {type(error).__name__}; this visitor's stream starts anew", file=sys.stderr)
            stream.close()
            resolve_future(request.answer, InputError("something failed in this frame; the stream starts anew"))
        else:
            resolve_future(request.answer, pictures)

    def _picture(self, request: Request) -> tuple[np.ndarray, float, float]:
        if request.picture is not None:
            return camera_picture(request.picture), request.captured_s, request.arrived_s
        if self._feed is None:
            assert self._open_feed is not None, "`LiveWorkers.offer` refuses"
            self._feed = self._open_feed()
        return self._feed.newest()


class LiveWorkers:
    """The workers of all live visitors, by the key that each browser drew (128 random bits)."""

    def __init__(
        self, max_streams: int, open_feed: Callable[[], Subscription] | None = None, idle_s: float = IDLE_S
    ) -> None:
        self.max_streams = max_streams
        self._open_feed, self._idle_s = open_feed, idle_s
        self.pool = NetworkPool()
        self._workers: dict[str, LiveWorker] = {}
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._workers)

    def warm(self, method: MethodSettings) -> Segmenter:
        """Loads libraries, kernels and the network, so that the first visitor need not wait; returns the segmenter."""
        with Lease(self.pool) as lease:
            opened = OpenMethod(method, lease)
            height, width = opened.meta.height, opened.meta.width
            opened.segmenter.step(Frame(np.zeros((height, width, 3), np.uint8), 0, 0.0))
        return opened.segmenter

    def offer(self, key: str, request: Request) -> None:
        """Queues a frame for a visitor's worker. A new visitor gets a worker if a place is free.

        Raises InputError if no place is free, the picture cannot be decoded, or the page has no source of its own.
        """
        if request.picture is None and self._open_feed is None:
            raise InputError("this page has no video of its own; start it with --source")
        if request.picture is not None and key not in self._workers:
            self._refuse_if_full(key)  # before the picture is decoded, and again when the place is taken
            camera_picture(request.picture)
        with self._lock:
            worker = self._workers.get(key)
            if worker is not None and worker.offer(request):
                return
            self._refuse_if_full(key)
            on_end = partial(self._forget, key)
            self._workers[key] = LiveWorker(self.pool, self._open_feed, on_end, self._idle_s, request)

    def _refuse_if_full(self, key: str) -> None:
        """Raises InputError unless a place is free for the visitor."""
        if len(self._workers.keys() - {key}) >= self.max_streams:
            taken = f"all {self.max_streams} places are taken; this page tries again until one is free"
            raise InputError(taken if self.max_streams else "this page has ended")

    def end(self, key: str) -> None:
        """Ends the worker of a visitor who left."""
        with self._lock:
            worker = self._workers.pop(key, None)
        if worker is not None:
            worker.end()

    def close(self, timeout_s: float = 5.0) -> None:
        """Ends all workers and waits for them; later requests are refused."""
        with self._lock:
            self.max_streams = 0
            workers = list(self._workers.values())
        for worker in workers:
            worker.end()
        for worker in workers:
            worker.join(timeout_s)

    def _forget(self, key: str, ended: LiveWorker) -> None:
        """Forgets a worker that ended, but not a later worker with its key."""
        with self._lock:
            if self._workers.get(key) is ended:
                del self._workers[key]
