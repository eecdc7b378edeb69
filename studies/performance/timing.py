"""Times several things against each other in turn, so that a change of the machine's pace meets all of them alike."""

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from steadyseg.core.stage_clock import StageClock

WARM_FRAMES = 10
"""Warm-up frames of a call that does many frames."""
SHORT_S = 0.25
"""An untimed call precedes each call shorter than this. It fills the caches with this row's weights. Meanwhile
the threads of the row before go to sleep (libgomp's spin for some milliseconds). A longer call hides both."""


@dataclass(frozen=True)
class Row:
    """Something to time."""

    name: str
    run: Callable[[int], object]
    """Does the given number of frames."""
    backend: str
    """Backend for the report: `openvino 2026.4 bf16`."""
    frames: int = 1
    """Frames of one timed call."""
    clock: StageClock | None = None
    """Times of a frame's stages, of the rows that are a whole step."""


@dataclass(frozen=True)
class Budget:
    """Time for each row."""

    seconds: float = 4.0
    """Seconds of each row, calls that are not timed included."""
    least: int = 5
    """Timed calls that a row gets however long they take."""
    most: int = 300
    """Timed calls after which the median does not move any more."""

    def calls(self, seconds_per_call: float) -> int:
        """Timed calls of a row whose call takes that long."""
        cost = seconds_per_call * (2 if seconds_per_call < SHORT_S else 1)
        return max(self.least, min(self.most, int(self.seconds / max(cost, 1e-9))))


@dataclass(frozen=True)
class Timing:
    """Timed calls of a row."""

    row: Row
    samples_ms: tuple[float, ...]
    """Per timed call: milliseconds per frame."""

    @property
    def median_ms(self) -> float:
        return float(np.median(self.samples_ms))

    @property
    def p95_ms(self) -> float:
        return float(np.percentile(self.samples_ms, 95))

    @property
    def frames_per_s(self) -> float:
        return 1e3 / self.median_ms


@dataclass(frozen=True)
class Progress:
    """Told between calls, never during one."""

    row: str
    done: int
    """Timed calls, of all rows together."""
    total: int
    is_result: bool = False
    """True for a line that stays: a first figure, long before all rows are timed in turn."""


def measure(
    rows: Sequence[Row],
    budget: Budget,
    *,
    clock: Callable[[], float] = time.perf_counter,
    progress: Callable[[Progress], None] = lambda _: None,
) -> list[Timing]:
    """Warms every row up, then times them in turn; the timings come in the order of the rows. `clock` is in seconds."""
    estimates = []
    for row in rows:
        progress(Progress(f"warming up {row.name}", 0, 0))
        estimates.append(warm_up(row, clock))
        progress(Progress(f"{row.name}: about {1e3 * estimates[-1] / row.frames:.1f} ms a frame", 0, 0, is_result=True))
    counts = [budget.calls(seconds) for seconds in estimates]
    samples: list[list[float]] = [[] for _ in rows]
    for done, position in enumerate(turns(counts)):
        row = rows[position]
        progress(Progress(row.name, done, sum(counts)))
        if estimates[position] < SHORT_S:
            row.run(row.frames)
        started = clock()
        row.run(row.frames)
        samples[position].append((clock() - started) * 1e3 / row.frames)
    return [Timing(row, tuple(times)) for row, times in zip(rows, samples, strict=True)]


def warm_up(row: Row, clock: Callable[[], float]) -> float:
    """Seconds that a call takes: the last of three runs, or the second run if that is long. The first one compiles."""
    frames = min(row.frames, WARM_FRAMES)
    seconds = 0.0
    for number in range(3):
        started = clock()
        row.run(frames)
        seconds = (clock() - started) * row.frames / frames
        if number and seconds > 1.0:
            break
    return seconds


def turns(counts: Sequence[int]) -> Iterator[int]:
    """Positions of the rows in the order of their calls: round after round, rows with fewer calls spread over all
    rounds."""
    rounds = max(counts, default=0)
    for number in range(rounds):
        for position, count in enumerate(counts):
            if (number + 1) * count // rounds > number * count // rounds:
                yield position
