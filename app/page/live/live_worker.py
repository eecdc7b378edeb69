"""Live streams outside the event loop: a thread and a queue of one frame for each visitor, closed on request or when
idle.

A newcomer takes a place only after the first picture was decoded, and newcomers are decoded one at a time.
"""

import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

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


def public_error(error: Exception) -> InputError:
    """The error to show to a visitor: an InputError itself, or a general one that hides the details."""
    if isinstance(error, InputError):
        return error
    print(f"live: {type(error).__name__}; this visitor's stream starts anew", file=sys.stderr)
    return InputError("something failed in this frame; the stream starts anew")


class LiveWorker:
    """The thread of one visitor. Every failure in it becomes an answer to this visitor alone.

    A daemon would compute on while Python ends, and its native code would abort the process.
    """

    def __init__(
        self, pool: NetworkPool, open_feed: Callable[[], Subscription] | None, on_end: Callable[[], None], idle_s: float
    ) -> None:
        self._pool, self._open_feed, self._on_end, self._idle_s = pool, open_feed, on_end, idle_s
        self._feed: Subscription | None = None
        self._queue = FrameQueue(1, self._drop)
        self.dropped = 0
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

    def is_current(self) -> bool:
        """True if called from this worker's thread."""
        return threading.current_thread() is self._thread

    def _run(self) -> None:
        stream = LiveStream(self._pool)
        try:
            while (request := self._queue.take(self._idle_s)) is not None:
                self._answer(stream, request)
        finally:
            self.end()  # where idle: a frame that came in this very moment is answered too
            stream.close()
            if self._feed is not None:
                self._feed.close()
            self._on_end()
            trim_memory()

    def _drop(self, older: Request, newer: Request) -> Request:
        self.dropped += 1
        resolve_future(older.answer, None)
        return newer

    def _answer(self, stream: LiveStream, request: Request) -> None:
        taken_s = time.perf_counter()
        try:
            image, time_s, arrived_s = self._picture(request)
            pictures = stream.step(image, request.settings, time_s)
            pictures.facts.update(self._times(request.arrived_s, taken_s, arrived_s))
        except Exception as error:
            if not isinstance(error, InputError):
                stream.close()
            resolve_future(request.answer, public_error(error))
        else:
            resolve_future(request.answer, pictures)

    def _picture(self, request: Request) -> tuple[np.ndarray, float, float]:
        if request.picture is not None:
            return camera_picture(request.picture), request.captured_s, request.arrived_s
        if self._feed is None:
            assert self._open_feed is not None, "`LiveWorkers.offer` refuses"
            self._feed = self._open_feed()
        return self._feed.newest()

    def _times(self, came_s: float, taken_s: float, arrived_s: float) -> dict[str, Any]:
        """Waiting time, computing time and age of a frame, as measured on the server."""
        now_s = time.perf_counter()
        return {
            "wait_ms": round((taken_s - came_s) * 1e3, 1),
            "server_ms": round((now_s - came_s) * 1e3, 1),
            "age_ms": round((now_s - arrived_s) * 1e3, 1),
            "replaced": self.dropped,
        }


class LiveWorkers:
    """The workers of all live visitors, by the key that each browser drew (128 random bits)."""

    def __init__(
        self, max_streams: int, open_feed: Callable[[], Subscription] | None = None, idle_s: float = IDLE_S
    ) -> None:
        self.max_streams = max_streams
        self._open_feed, self._idle_s = open_feed, idle_s
        self.pool = NetworkPool()
        self._door = ThreadPoolExecutor(1, "door")
        self._workers: dict[str, LiveWorker] = {}
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._workers)

    def warm(self, method: MethodSettings) -> Segmenter:
        """Loads libraries, kernels and the network, so that the first visitor need not wait; returns the segmenter."""
        with Lease(self.pool) as lease:
            opened = OpenMethod(method, lease)
            height, width = opened.meta.height, opened.meta.width
            opened.step(Frame(np.zeros((height, width, 3), np.uint8), 0, 0.0), keep_probs=False)
        return opened.segmenter

    def offer(self, key: str, request: Request) -> None:
        """Queues a frame for a visitor's worker, or checks a newcomer. InputError if a missing source is asked for."""
        if request.picture is None and self._open_feed is None:
            raise InputError("this page has no video of its own; start it with --source")
        worker = self._workers.get(key)
        if worker is None or not worker.offer(request):
            self._door.submit(self._admit, key, request)

    def end(self, key: str) -> None:
        """Ends the worker of a visitor who left."""
        worker = self._forget(key)
        if worker is not None:
            worker.end()

    def close(self, timeout_s: float = 5.0) -> None:
        """Ends all workers and waits for them; later requests are refused."""
        self.max_streams = 0
        self._door.submit(lambda: None).result()  # a newcomer at the door is a worker now, or was refused
        with self._lock:
            workers = list(self._workers.values())
        for worker in workers:
            worker.end()
        for worker in workers:
            worker.join(timeout_s)

    def _admit(self, key: str, request: Request) -> None:
        """Makes a worker for a newcomer, or answers with the reason for a refusal. Runs in the thread for newcomers."""
        try:
            while not self._worker(key, request).offer(request):
                self._forget(key)
        except Exception as error:
            resolve_future(request.answer, public_error(error))

    def _worker(self, key: str, request: Request) -> LiveWorker:
        """The visitor's worker; InputError if no place is free or the first picture cannot be decoded."""
        worker = self._workers.get(key)
        if worker is not None:
            return worker
        if len(self._workers) >= self.max_streams:  # nobody else adds to them
            taken = f"all {self.max_streams} places are taken; this page tries again until one is free"
            raise InputError(taken if self.max_streams else "this page has ended")
        if request.picture is not None:
            camera_picture(request.picture)
        with self._lock:
            worker = LiveWorker(self.pool, self._open_feed, lambda: self._ended(key), self._idle_s)
            self._workers[key] = worker
        return worker

    def _forget(self, key: str) -> LiveWorker | None:
        with self._lock:
            return self._workers.pop(key, None)

    def _ended(self, key: str) -> None:
        """Forgets a worker that ended, but not a later worker with its key. Called from the worker's own thread."""
        with self._lock:
            worker = self._workers.get(key)
            if worker is not None and worker.is_current():
                del self._workers[key]
