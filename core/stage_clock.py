"""Times of the stages of a frame."""

import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

MAX_TIMES = 10_000
"""Percentiles are over the latest samples of each stage, at most this many: 400 s at 25 frames/s, and flat memory."""


class StageClock:
    """Milliseconds of each named stage of a frame."""

    def __init__(self) -> None:
        self.samples: dict[str, deque[float]] = {}
        self._added_ms = 0.0

    @contextmanager
    def measure(self, stage: str) -> Iterator[None]:
        """Times a block, minus the stages that are timed inside it; on a GPU the caller synchronises within the
        block."""
        started, added_ms = time.perf_counter(), self._added_ms
        yield
        inside_ms = self._added_ms - added_ms
        self.add(stage, (time.perf_counter() - started) * 1e3 - inside_ms)

    def add(self, stage: str, milliseconds: float) -> None:
        """Adds a sample of the stage."""
        self._added_ms += milliseconds
        self.samples.setdefault(stage, deque(maxlen=MAX_TIMES)).append(milliseconds)

    def extend(self, stage: str, milliseconds: float) -> None:
        """Adds time to the latest sample of the stage, or begins it."""
        samples = self.samples.setdefault(stage, deque(maxlen=MAX_TIMES))
        self._added_ms += milliseconds
        samples.append(milliseconds + (samples.pop() if samples else 0.0))

    def summary(self) -> dict[str, dict[str, float]]:
        """{stage: {latency_p50_ms, latency_p95_ms}} in order of first use."""
        summary = {}
        for stage, samples in self.samples.items():
            if samples:
                p50, p95 = np.percentile(np.array(samples), [50, 95])
                summary[stage] = {"latency_p50_ms": round(float(p50), 3), "latency_p95_ms": round(float(p95), 3)}
        return summary
