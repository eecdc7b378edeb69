"""A worker for cameras: a thread for each camera reads, and one thread segments the frame that has waited longest."""

import threading
import time
from collections import deque
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from steadyseg.app.scale.cameras.state import CameraState
from steadyseg.app.scale.engines.machine import peak_memory_bytes, pin_core, use_one_thread
from steadyseg.core.errors import InputError

if TYPE_CHECKING:
    from steadyseg.app.scale.cameras.camera_file import Camera
    from steadyseg.app.scale.cameras.stream import Arrived, CameraStream
    from steadyseg.app.video.flags import VideoOptions
    from steadyseg.core.frame import Maps

PROBE_FRAMES, PROBE_WARM = 12, 4
RATE_OVER_S = 10.0
STEP_WITHIN_S = 300.0
"""The worker ends if segmenting a frame takes more than this many seconds: a runtime that hangs would silence all
cameras."""
SPREAD_S = 0.05
"""Seconds between the first attempts of two cameras."""


@dataclass(frozen=True)
class Measured:
    """Time and memory that a worker needs."""

    step_ms: float
    """Processor time per frame, without the time to read the frame."""
    memory_bytes: int
    """Peak resident memory without any camera."""
    has_familiarity: bool
    """True if the network reports familiarity."""


class CameraWorker:
    """A worker in a process of its own; its cameras are given once."""

    def __init__(self, options: "VideoOptions") -> None:
        pin_core()  # before torch is imported
        self._options = options
        self._networks: Any = None
        self._watched: list[WatchedCamera] = []
        self._came, self._step_s = threading.Condition(), 0.0
        self._thread: threading.Thread | None = None

    def measure(self) -> Measured:
        """Segments a few frames and returns the cost. Raises InputError if the model cannot be opened."""
        import numpy as np

        from steadyseg.core.frame import Frame

        segmenter = self._open(wait=True)
        height, width = segmenter.size
        image = np.random.default_rng(0).integers(0, 255, (height, width, 3), np.uint8)
        times = []
        for index in range(PROBE_FRAMES):
            began_s = time.perf_counter()
            segmenter.step(Frame(image, index, index / 25))
            times.append(1e3 * (time.perf_counter() - began_s))
        step_ms = sorted(times[PROBE_WARM:])[len(times[PROBE_WARM:]) // 2]
        return Measured(step_ms, peak_memory_bytes(), segmenter.reference is not None)

    def watch(self, cameras: "tuple[Camera, ...]") -> None:
        """Starts the thread of every camera; a camera that cannot be opened is tried again without end."""
        from steadyseg.app.scale.cameras.stream import CameraStream

        watched = []
        for place, camera in enumerate(cameras):
            segmenter = self._open()
            stream = CameraStream(camera, segmenter.classes, self._came, place * SPREAD_S)
            watched.append(WatchedCamera(stream, segmenter))
        self.begin(watched)
        for one in watched:
            one.stream.start()

    def begin(self, watched: "list[WatchedCamera]") -> None:
        """Starts the thread that segments."""
        self._watched = watched
        self._step_s = time.monotonic()
        self._thread = threading.Thread(target=self._segment, name="segmenter", daemon=True)
        self._thread.start()

    def states(self) -> list[CameraState]:
        """States of all cameras now. Raises RuntimeError, which ends the worker, if the segmenting thread has ended or
        does not come back from a frame."""
        if self._thread is None or not self._thread.is_alive():
            raise RuntimeError("the thread that segments has ended")
        if time.monotonic() - self._step_s > STEP_WITHIN_S:
            raise RuntimeError(f"a frame takes more than {STEP_WITHIN_S:g} s")
        return [watched.state() for watched in self._watched]

    def _segment(self) -> None:
        while True:
            with self._came:
                waiting = [(since, one) for one in self._watched if (since := one.stream.waiting_since()) is not None]
                self._step_s = time.monotonic()
                if not waiting:
                    self._came.wait(0.5)
                    continue
                _, watched = min(waiting, key=lambda pair: pair[0])
                arrived = watched.stream.take()
            watched.step(arrived)

    def _open(self, wait: bool = False) -> Any:
        """A segmenter with its own state. All share the compiled networks, since one thread steps them."""
        from steadyseg.app.video.caches import BackgroundNetworks
        from steadyseg.app.video.flags import VideoJob
        from steadyseg.app.video.job import open_for

        self._networks = self._networks or BackgroundNetworks()
        take = self._networks.take_now if wait else self._networks.take
        segmenter = open_for(VideoJob("", options=self._options), take)
        use_one_thread()
        return segmenter


class WatchedCamera:
    """A camera with its temporal state and its metrics."""

    def __init__(self, stream: "CameraStream", segmenter: Any) -> None:
        self.stream, self._segmenter = stream, segmenter
        self._began_s = self._latest_s = time.monotonic()
        self._latest = CameraState(stream.camera.name)
        """Metrics at the latest frame; `state` adds the metrics that change without frames."""
        self._passed_over, self._trouble = 0, ""
        self._times: deque[float] = deque()

    def step(self, arrived: "Arrived") -> None:
        """Segments a frame; a failure is recorded as this camera's trouble until a frame succeeds."""
        from steadyseg.app.scale.cameras.camera_file import redacted
        from steadyseg.app.video.caches import StillCompiling

        began_s = time.thread_time()
        try:
            maps = self._segmenter.step(arrived.frame)
        except (StillCompiling, InputError) as error:
            self._trouble = redacted(str(error))
        except Exception as error:  # for example from a runtime's C++; the other cameras go on
            self._trouble = redacted(f"{type(error).__name__}: {error}")
        else:
            self._trouble = ""
            self._record(arrived, maps, began_s)
            return
        self._passed_over += 1
        self._segmenter.reset()

    def _record(self, arrived: "Arrived", maps: "Maps", began_s: float) -> None:
        before, now_s = self._latest, time.monotonic()
        busy_ms = before.step_ms * before.frames + 1e3 * (time.thread_time() - began_s)
        self._latest = replace(
            before,
            frames=before.frames + 1,
            age_s=now_s - arrived.at_s,
            step_ms=busy_ms / (before.frames + 1),
            confidence=float(maps.confidence.mean()) / 255,
            entropy=float(maps.entropy.mean()) / 255,
            familiarity=maps.familiarity,
            expected_accuracy=maps.expected_accuracy,
            ood_s=maps.ood_s or 0.0,
            low_s=maps.below.seconds if maps.below else 0.0,
        )
        self._latest_s = now_s
        self._times.append(now_s)

    def state(self) -> CameraState:
        """The current metrics, for other threads than the segmenting thread."""
        now_s = time.monotonic()
        while self._times and self._times[0] < now_s - RATE_OVER_S:
            self._times.popleft()
        return replace(
            self._latest,
            dropped=self.stream.counts["dropped"] + self._passed_over,
            reconnections=self.stream.reconnections(),
            resets=sum(self._segmenter.resets.values()),
            fps=len(self._times) / min(RATE_OVER_S, max(now_s - self._began_s, 1e-3)),
            sent_fps=self.stream.pace.sent_fps,
            silent_s=now_s - self._latest_s,
            trouble=self.stream.trouble or self._trouble,
        )
