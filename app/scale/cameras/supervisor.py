"""The driver of the cameras: keeps every worker alive and asks it once a second for its metrics."""

import threading
import time
from collections.abc import Iterator, Sequence
from typing import Any

from steadyseg.app.scale.cameras.camera_file import Camera
from steadyseg.app.scale.cameras.state import CameraFigures, CameraHistory
from steadyseg.app.scale.engines.engine import Answer, Engine
from steadyseg.core.errors import CheckFailed, InputError

ASK_EVERY_S = 1.0
ANSWER_WITHIN_S, OPEN_WITHIN_S = 30.0, 180.0
"""A worker counts as frozen and is replaced after these times; opening imports, compiles, and opens a network for each
camera."""
DEATHS_IN_A_ROW = 5
"""The command ends when a worker died this often before it was ready, and no other worker is ready."""
HANGS_AFTER_S = 60.0
"""The metrics are out of date after this time without a round."""


class Supervisor:
    """Keeps the workers alive. Any thread may call `figures`; only the thread that iterates `rounds` may call the other
    methods."""

    def __init__(self, engine: Engine, placed: Sequence[tuple[Camera, ...]]) -> None:
        self._engine, self._placed = engine, placed
        self._histories = {camera.name: CameraHistory(camera.name) for cameras in placed for camera in cameras}
        self._asked: dict[int, tuple[str, float]] = {}
        """The unanswered call of each slot, with its time."""
        self._deaths, self._ready = [0] * len(placed), False
        self._lock, self._round_s = threading.Lock(), time.monotonic()

    def figures(self) -> list[CameraFigures]:
        """Current metrics of every camera, in the order of their names."""
        with self._lock:
            return [self._histories[name].figures(time.monotonic()) for name in sorted(self._histories)]

    def trouble(self) -> str:
        """Reason why the metrics are out of date, for an external watchdog; empty while the rounds go on."""
        late_s = time.monotonic() - self._round_s
        return f"the workers were last looked at {late_s:.0f} s ago" if late_s > HANGS_AFTER_S else ""

    def rounds(self) -> Iterator[None]:
        """Keeps the workers alive and asks for their metrics; yields once a second, without end. Raises InputError if
        the network cannot be opened, CheckFailed if no worker becomes ready."""
        self._engine.grow(len(self._placed))
        for slot in range(len(self._placed)):
            self._call(slot, "watch", self._placed[slot])
        while True:
            self._round_s = time.monotonic()
            until_s = self._round_s + ASK_EVERY_S
            while (left_s := until_s - time.monotonic()) > 0:
                for answer in self._engine.wait(left_s) if self._asked else ():
                    self._hear(answer)
                if not self._asked:
                    time.sleep(min(left_s, 0.05))
            self._replace_frozen()
            for slot in range(len(self._placed)):
                if slot not in self._asked:
                    self._call(slot, "states")
            yield

    def _call(self, slot: int, method: str, *arguments: Any) -> None:
        self._asked[slot] = method, time.monotonic()
        self._engine.call(slot, method, *arguments)

    def _hear(self, answer: Answer) -> None:
        method, _ = self._asked.pop(answer.slot, ("", 0.0))
        if answer.refusal and not self._ready:
            raise InputError(answer.refusal)
        if answer.refusal:  # a network that opened before, so the model's file may be gone
            self._engine.replace(answer.slot)
        if answer.refusal or answer.lost:
            self._begin_again(answer.slot, answer.refusal or answer.lost or "")
        elif method == "states":
            self._deaths[answer.slot], self._ready = 0, True
            with self._lock:
                for state in answer.value:
                    self._histories[state.name].update(state, time.monotonic())

    def _replace_frozen(self) -> None:
        for slot, (method, since_s) in list(self._asked.items()):
            patience_s = ANSWER_WITHIN_S if method == "states" else OPEN_WITHIN_S
            if time.monotonic() - since_s > patience_s:
                self._engine.replace(slot)
                del self._asked[slot]
                self._begin_again(slot, f"no answer within {patience_s:g} s")

    def _begin_again(self, slot: int, why: str) -> None:
        self._deaths[slot] += 1
        if self._deaths[slot] >= DEATHS_IN_A_ROW and not self._ready:
            raise CheckFailed(f"a worker has died {DEATHS_IN_A_ROW} times before it was ready, and no other is: {why}")
        with self._lock:
            for camera in self._placed[slot]:
                self._histories[camera.name].lost(time.monotonic(), why)
        self._call(slot, "watch", self._placed[slot])
