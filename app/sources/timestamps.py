"""Conversion of a stream's time stamps, which may be missing or run backwards, to rising seconds from its start."""

import math
from collections import Counter


class FrameClock:
    """Called once per frame; corrected stamps are counted under "mended_time"."""

    def __init__(self, step_s: float, losses: Counter[str]) -> None:
        self._step_s = step_s
        self._losses = losses
        self._time_s = -step_s
        self._stamp_s: float | None = None
        self._offset_s: float | None = None

    def __call__(self, stamp_s: float | None) -> float:
        """Seconds from the first frame; a missing, non-finite or backward stamp becomes previous + one frame."""
        if stamp_s is None or not math.isfinite(stamp_s):
            return self._mend()
        if self._offset_s is None:
            self._offset_s = self._time_s + self._step_s - stamp_s
        rising = self._stamp_s is not None and stamp_s > self._stamp_s
        self._stamp_s = stamp_s
        if stamp_s + self._offset_s > self._time_s:
            self._time_s = stamp_s + self._offset_s
            return self._time_s
        if rising:  # the second frame in a row that rises, but in the past: the stamps started anew, go along with them
            self._offset_s = self._time_s + self._step_s - stamp_s
        return self._mend()

    def restart(self, time_s: float) -> None:
        """Starts the stamps anew; the next frame is at `time_s`, and later than the previous one in any case."""
        self._time_s = max(self._time_s, time_s - self._step_s)
        self._offset_s = self._stamp_s = None

    def _mend(self) -> float:
        self._losses["mended_time"] += 1
        self._time_s += self._step_s
        return self._time_s
