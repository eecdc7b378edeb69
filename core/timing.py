"""Where the time of a frame goes: a clock per stage that remembers a bounded number of samples."""

import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

REMEMBERED = 10_000
"""Samples per stage that percentiles are taken over (the latest ones): 400 s at 25 frames/s, and flat memory."""


class StageClock:
    """Milliseconds per named stage."""

    def __init__(self) -> None:
        self.samples: dict[str, deque[float]] = {}
        self._added_ms = 0.0

    @contextmanager
    def measure(self, stage: str) -> Iterator[None]:
        """Times the block, without the stages that were timed inside it; on a GPU the caller synchronises inside it."""
        started, added_ms = time.perf_counter(), self._added_ms
        yield
        inside_ms = self._added_ms - added_ms
        self.add(stage, (time.perf_counter() - started) * 1e3 - inside_ms)

    def add(self, stage: str, milliseconds: float) -> None:
        """One more sample of the stage."""
        self._added_ms += milliseconds
        self.samples.setdefault(stage, deque(maxlen=REMEMBERED)).append(milliseconds)

    def summary(self) -> dict[str, dict[str, float]]:
        """{stage: {latency_p50_ms, latency_p95_ms}} in order of first use."""
        found = {}
        for stage, samples in self.samples.items():
            if not samples:
                continue
            p50, p95 = np.percentile(np.array(samples), [50, 95])
            found[stage] = {"latency_p50_ms": round(float(p50), 3), "latency_p95_ms": round(float(p95), 3)}
        return found
