"""A sequential alarm over a stream's novelty: this is another place than the network was trained for.

One frame says little where novelty only leans towards the reference's edge; many seconds of such frames say much. Each
block of a second gives an e-value, a number with a mean of at most 1 over the training domain, and the alarm multiplies
them: an e-detector (Shin, Ramdas and Rinaldo 2024, arXiv 2203.03532) of the kind CUSUM.
"""

import math

KAPPA, LEANS = 0.25, 0.1
"""Novelty p becomes the mean of two e-values (Vovk and Wang 2021, arXiv 1912.06116): kappa p^(kappa - 1), and 1 / 0.1
where p is at most 0.1. The second tells a place that only leans; the form was chosen on streets (docs/studies/novelty).
"""
BLOCK_S = 1.0
"""Seconds of a block. Its e-value is the mean of those of its frames: a mean of e-values is one, however they depend on
each other."""
BLOCKS_BETWEEN = 3600.0
"""Blocks between two false alarms: an hour, were the blocks of a drive independent (docs/studies/novelty)."""
LIMIT = math.log(BLOCKS_BETWEEN)


def e_value(novelty: float) -> float:
    """Evidence of one frame, with mean 1 over novelties that are uniform in 0..1: 11 at 1 / 180, 5.7 at 0.1, 0.2 at
    0.5."""
    return ((1.0 / LEANS if novelty <= LEANS else 0.0) + KAPPA * novelty ** (KAPPA - 1.0)) / 2.0


class PlaceAlarm:
    """The alarm of one stream. It starts when the product of e-values since some block reaches `BLOCKS_BETWEEN`.

    The product never falls below 1, nor rises above the limit; the alarm ends when it is 1 again, after about ten
    seconds of familiar frames.
    """

    def __init__(self) -> None:
        self._log_product, self._is_on = 0.0, False
        self._last_s = math.inf
        self._rise_s = self._block_s = 0.0
        self._sum, self._frames = 0.0, 0

    def update(self, novelty: float, time_s: float) -> float | None:
        """Returns for how many seconds the stream has shown another place; None while there is no alarm.

        `novelty`: share as in `core.reference`, above 0; `time_s`: of the frame. A clock that steps back stands still.
        """
        step_s = max(0.0, time_s - self._last_s)
        self._last_s = time_s
        self._rise_s += step_s
        self._block_s += step_s
        if self._block_s >= BLOCK_S:
            self._close_block()
        self._sum += e_value(novelty)
        self._frames += 1
        return self._rise_s if self._is_on else None

    def _close_block(self) -> None:
        if self._log_product == 0.0:
            self._rise_s = self._block_s
        now = self._log_product + math.log(self._sum / self._frames)
        self._log_product = min(max(now, 0.0), LIMIT)
        self._is_on = self._log_product == LIMIT or (self._is_on and self._log_product > 0.0)
        self._block_s, self._sum, self._frames = 0.0, 0.0, 0
