"""Two alarms over the frames of a stream. `PlaceAlarm`: the place is another than the network was trained for.
`LowAccuracy`: the expected accuracy is below a limit.

A single slightly unfamiliar frame says little, many seconds of such frames say much. Each block of a second gives an
e-value, a number with a mean of at most 1 over the training domain. `PlaceAlarm` multiplies the e-values: it is a
CUSUM e-detector (Shin, Ramdas and Rinaldo 2024, arXiv 2203.03532).
"""

import math
from typing import NamedTuple

KAPPA, LEANS = 0.25, 0.1
"""A familiarity p becomes the mean of two e-values (Vovk and Wang 2021, arXiv 1912.06116): kappa p^(kappa - 1), and
1 / 0.1 if p is at most 0.1. The second one detects a place whose frames are only slightly unfamiliar. The form was
chosen on simulated streets (docs/records/familiarity)."""
BLOCK_S = 1.0
"""Seconds of a block. Its value is the mean over its frames: a mean of e-values is an e-value, even if they depend on
each other."""
BLOCKS_BETWEEN = 3600.0
"""Blocks between two false alarms: an hour, if the blocks of a drive were independent (docs/records/familiarity)."""
LIMIT = math.log(BLOCKS_BETWEEN)
LOW_ACCURACY = 0.8
"""Default limit of the expected accuracy; the included networks have 0.87 to 0.93 on their training domain."""
LOW_BLOCKS = 2
"""The alarm begins after this many blocks in a row below the limit, and ends after as many at or above it. With a
smaller number, it began twice on one simulated street (docs/records/familiarity)."""


def e_value(familiarity: float) -> float:
    """Evidence of one frame: its mean is 1 if familiarities are uniform in 0..1. A familiarity of 1 / 180 gives 11, 0.1
    gives 5.7, and 0.5 gives 0.2."""
    return ((1.0 / LEANS if familiarity <= LEANS else 0.0) + KAPPA * familiarity ** (KAPPA - 1.0)) / 2.0


class Block(NamedTuple):
    """A finished block of a stream."""

    mean: float
    seconds: float


class Blocks:
    """Means of a value over the blocks of a stream. A clock that steps back counts as standing still."""

    def __init__(self) -> None:
        self._last_s = math.inf
        self._seconds = self._sum = 0.0
        self._frames = 0

    def update(self, value: float, time_s: float) -> tuple[float, Block | None]:
        """Adds a frame. Returns the seconds since the previous frame, and the finished block if this frame starts a new
        block."""
        step_s = max(0.0, time_s - self._last_s)
        self._last_s = time_s
        self._seconds += step_s
        over = None
        if self._seconds >= BLOCK_S:
            over = Block(self._sum / self._frames, self._seconds)
            self._seconds, self._sum, self._frames = 0.0, 0.0, 0
        self._sum += value
        self._frames += 1
        return step_s, over


class PlaceAlarm:
    """The alarm of a new place. It starts when the product of e-values since any block reaches `BLOCKS_BETWEEN`.

    The product stays between 1 and the limit. The alarm ends when it is 1 again, after about ten seconds of familiar
    frames.
    """

    def __init__(self) -> None:
        self._blocks = Blocks()
        self._log_product, self._is_on = 0.0, False
        self._rise_s = 0.0

    def update(self, familiarity: float, time_s: float) -> float | None:
        """Returns the seconds for which the stream has shown another place; None without an alarm.

        `familiarity`: share as in `core.reference`, above 0; `time_s`: of the frame.
        """
        step_s, block = self._blocks.update(e_value(familiarity), time_s)
        self._rise_s += step_s
        if block:
            if self._log_product == 0.0:
                self._rise_s = block.seconds
            self._log_product = min(max(self._log_product + math.log(block.mean), 0.0), LIMIT)
            self._is_on = self._log_product == LIMIT or (self._is_on and self._log_product > 0.0)
        return self._rise_s if self._is_on else None


class LowAccuracy:
    """The alarm of a low expected accuracy. It begins after `LOW_BLOCKS` blocks in a row below the limit and ends after
    as many others. It depends on the network's own confidence, and measures nothing."""

    def __init__(self) -> None:
        self._blocks, self._is_on = Blocks(), False
        self._low_s = 0.0
        self._against = 0
        """Blocks in a row that contradict the present state."""

    def update(self, expected_accuracy: float, time_s: float, limit: float) -> float | None:
        """Adds a frame at `time_s`. While the alarm is on, returns the seconds since the first block below the limit.

        `expected_accuracy` and `limit`: shares of the pixels.
        """
        step_s, block = self._blocks.update(expected_accuracy, time_s)
        self._low_s += step_s
        if block:
            is_low = block.mean < limit
            if is_low and not self._is_on and not self._against:
                self._low_s = block.seconds
            self._against = self._against + 1 if is_low != self._is_on else 0
            if self._against == LOW_BLOCKS:
                self._is_on, self._against = is_low, 0
        return self._low_s if self._is_on else None
