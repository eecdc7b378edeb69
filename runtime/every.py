"""A backend that runs the network on some frames and carries the maps of the last call to the frames between.

Counted: the network runs on every N-th source frame. Auto: it runs where the maps would lose too much, by the picture
alone and never by the machine's speed. Live: it runs in a thread of its own on the newest frame, and no frame waits.
"""

import threading
import time
from concurrent.futures import Future
from dataclasses import dataclass, field, replace

import numpy as np

from steadyseg.core.errors import InputError, shorten
from steadyseg.core.expected import carried_loss
from steadyseg.core.frame import FrameScores, Maps
from steadyseg.core.method import Method
from steadyseg.core.motion import Motion, compose, inside
from steadyseg.core.options import Every, is_whole
from steadyseg.core.segmenter import Backend
from steadyseg.core.stage_clock import StageClock
from steadyseg.runtime.cpu_backend import resize_map
from steadyseg.runtime.kernels.carried import CarriedMaps

MOST, AUTO_MOST = 30, 4
"""The largest N, after which a live frame waits for the network too; source frames between two calls of auto."""
AUTO_DOUBT = 0.1
"""Auto: the network runs where the mean doubt about the motion since its last call is above this. There carried maps
have lost 1.5 points of accuracy on drawn streets, and 0.3 on val."""
CHANGED_DOUBT = 0.5
"""Every N: the network runs at once where the mean doubt is above this: an exposure jump, a fault of the camera."""
QUICK_S = 0.02
"""Live: a frame waits for a network whose last call took less than this, so that a quick one runs on every frame."""

Answer = tuple[Maps, FrameScores | None]


def check_every(every: Every, method: Method) -> None:
    """Raises InputError for what is no choice, and for a mean over time that follows no motion."""
    if not (is_whole(every, 1, MOST) or every in ("auto", "live")):
        raise InputError(f"every must be a whole number, 1 to {MOST}, auto or live, got {shorten(every)}")
    if every != 1 and method.tau is not None and not method.motion:
        raise InputError(f"every {every} carries the mean along the motion, and {method} follows none; omit every")


def carried(backend: Backend, every: Every) -> Backend:
    """The backend itself, or one that carries its maps; InputError as `check_every`."""
    check_every(every, backend.method)
    return backend if every == 1 else CarryingBackend(backend, every)


def default_every(live: bool, method: Method) -> Every:
    """A live source does not wait for the network, where the mean follows motion or there is none; else every frame."""
    return "live" if live and (method.tau is None or method.motion) else 1


@dataclass
class _Call:
    """A network call; the motion (None: none yet) and the source frames since the frame that it computes."""

    answer: "Future[Answer]" = field(default_factory=Future)
    motion: Motion | None = None
    gap: int = 0
    seconds: float = 0.0


class CarryingBackend:
    """See `Backend` and `Carrying` of core/segmenter.py. Every frame but the first of a stream comes with its motion.
    Not thread-safe."""

    def __init__(self, backend: Backend, every: Every) -> None:
        self._backend, self.every, self.keep_probs = backend, every, backend.keep_probs
        backend.keep_probs = True
        self.name, self.device, self.reference = backend.name, backend.device, backend.reference
        self.classes, self.method, self.size = backend.classes, backend.method, backend.size
        self.head_stride, self.state_size = backend.head_stride, backend.state_size
        self.clock = StageClock()
        self.frames = self.calls = 0
        self._shown: tuple[Maps, CarriedMaps] | None = None  # of the latest call that is done
        self._since, self._running = _Call(), list[_Call]()  # since its frame, and the call that runs, if any

    @property
    def why(self) -> str:
        """Reason for this backend, and how many frames had the network."""
        told = f" (it ran for {self.calls} of {self.frames} frames)" if self.frames else ""
        how = "in its own thread" if self.every == "live" else f"every {self.every}"
        return "; ".join(filter(None, (self._backend.why, f"network {how}{told}")))

    def compute(self, image: np.ndarray, gap: int, motion: Motion | None) -> Answer:
        """As the protocol; `Maps.network` is False where maps were carried. Live: scores of a call that just ended."""
        self.frames += 1
        if not gap or motion is None or self._shown is None:
            self.wait()
            return self._call(image, gap, motion)
        motion = replace(motion, trust=motion.trust * inside(motion.source))
        for call in (self._since, *self._running):
            call.motion, call.gap = compose(call.motion, motion), call.gap + gap
        if self.every == "live":
            return self._beside(image)
        return self._call(image, self._since.gap, self._since.motion) if self._is_due() else self._carried(image)

    def wait(self) -> None:
        """Waits for the network call that still runs, and forgets it."""
        while self._running:
            self._running.pop().answer.exception()

    def carried_from(self) -> tuple[Maps, float]:
        """As the protocol."""
        assert self._shown is not None
        return self._shown[0], carried_loss(self._since.gap)

    def _is_due(self) -> bool:
        assert self._since.motion is not None
        most, limit = {"auto": (AUTO_MOST, AUTO_DOUBT)}.get(str(self.every), (self.every, CHANGED_DOUBT))
        return self._since.gap >= int(most) or 1.0 - float(self._since.motion.trust.mean()) > limit

    def _beside(self, image: np.ndarray) -> Answer:
        """Takes the newest answer, starts a call on this frame if none runs, and carries the answer here."""
        scores = None
        if self._running and (self._running[0].answer.done() or self._since.gap > MOST):
            _, scores = self._take(self._running.pop())
        if self._shown is None:
            return self._call(image, self._since.gap, self._since.motion)
        if not self._running:
            if self._since.seconds < QUICK_S:
                return self._call(image, self._since.gap, self._since.motion)
            call = _Call()
            given = (call, image, self._since.gap, self._since.motion)
            threading.Thread(target=self._run, args=given, name="network", daemon=False).start()
            self._running.append(call)
        return self._carried(image)[0], scores

    def _call(self, image: np.ndarray, gap: int, motion: Motion | None) -> Answer:
        call = _Call()
        self._run(call, image, gap, motion)
        return self._take(call)

    def _run(self, call: _Call, image: np.ndarray, gap: int, motion: Motion | None) -> None:
        started = time.perf_counter()
        try:
            answer = self._backend.compute(image, gap, motion if self.method.motion else None)
        except BaseException as error:
            call.answer.set_exception(error)
        else:
            call.seconds = time.perf_counter() - started
            call.answer.set_result(answer)

    def _take(self, call: _Call) -> Answer:
        """Waits for the call, whose maps are the newest from now on. Maps that are not finite are carried nowhere."""
        maps, scores = call.answer.result()
        assert maps.probs is not None
        size = maps.probs.shape[1:]
        disagreement = resize_map(maps.disagreement, (size[0], size[1]), is_label=False)
        self._shown = (maps, CarriedMaps(maps.probs, disagreement, self.head_stride)) if maps.finite else None
        self._since, self.calls = call, self.calls + 1
        for stage, samples in self._backend.clock.samples.items():
            self.clock.add(stage, samples[-1])
        return replace(maps, probs=maps.probs if self.keep_probs else None), scores

    def _carried(self, image: np.ndarray) -> Answer:
        assert self._shown is not None and self._since.motion is not None
        maps, carried = self._shown
        with self.clock.measure("smoothing"):
            now = carried(self._since.motion, self.keep_probs)
            size = image.shape[:2]
            label, confidence, entropy, disagreement = (
                resize_map(values, size, is_label=values is now.label) for values in now
            )
        probs = carried.probs if self.keep_probs else None
        return Maps(
            label, confidence, entropy, disagreement, probs, maps.familiarity, energy=maps.energy, network=False
        ), None
