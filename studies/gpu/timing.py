"""Times of repeated calls."""

import time
from collections.abc import Callable
from statistics import median
from typing import Any

Row = dict[str, Any]
WARM_UP = 3


def timed(step: Callable[[], Any], seconds: float) -> Row:
    """Calls a second by the median call, over so many seconds and three calls at least."""
    for _ in range(WARM_UP):
        step()
    times: list[float] = []
    while sum(times) < seconds or len(times) < 3:
        before = time.perf_counter()
        step()
        times.append(time.perf_counter() - before)
    ordered = sorted(times)
    return {
        "latency_p50_ms": 1e3 * median(times),
        "latency_p95_ms": 1e3 * ordered[int(0.95 * (len(ordered) - 1))],
        "frames_per_s": 1 / median(times),
        "calls": len(times),
    }
