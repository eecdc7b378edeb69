"""Familiarity: the share of reference frames that score at least as high as this frame. The reference frames are from
the training recordings; no means or covariances were fitted on them. Scores are averaged over time by the recursion of
the maps (core/temporal.py), and start anew with them.
"""

import math
from bisect import bisect_left
from dataclasses import dataclass
from typing import Any

from steadyseg.core.expected import ExpectedAccuracy

NOVEL = 0.05
"""A frame of this share or less is novel, as one frame in twenty of the training domain is."""
BILLION = 10**9
MIN_FRAMES = 20
"""With fewer held-out frames, a share of 5 % cannot be measured."""


@dataclass(frozen=True)
class ReferenceScores:
    """Scores of held-out frames, ascending."""

    scores: tuple[float, ...]
    data: str = ""
    """Name of the data that the frames are from, such as camvid; empty if unknown."""
    expected: ExpectedAccuracy | None = None
    """How scores lower the expected accuracy; None for a classifier, and for a fit of a version before 0.3."""

    def share(self, score: float) -> float:
        """Returns the share of frames that are at least as novel; never 0. NaN is the most novel score."""
        at_least = len(self.scores) - bisect_left(self.scores, score)
        return float(familiarity_share(at_least if score == score else 0, len(self.scores)))

    @property
    def max(self) -> float:
        """Upper limit of a score in the mean over time: the most novel frame of the reference, and one deviation more.

        Without the limit, one picture of a single colour would keep the mean novel for 20 frames; the limit makes it 6.
        """
        return self.scores[-1] + 1.0

    def bounded(self, score: float) -> float:
        """Returns the score, at most `max`; NaN becomes `max`."""
        return score if score < self.max else self.max

    def is_novel(self, score: float) -> bool:
        """True if at most one frame in twenty of the training domain is as novel."""
        return self.share(score) <= NOVEL


def familiarity_share(at_least: Any, count: int) -> Any:
    """(1 + n) / (1 + N), exact for one more frame of the same distribution. Numbers or tensors.

    Args:
        at_least: n, the number of reference frames with a score as high.
        count: N, the number of reference frames.
    """
    return (1.0 + at_least) / (1.0 + count)


def smooth_score(score: Any, before: tuple[Any, Any], decay: Any) -> tuple[Any, Any]:
    """Returns (mean, mass) with one more frame: mass = 1 + d mass; mean += (now - mean) / mass.

    `decay` d of 0 starts anew. Floats or tensors.
    """
    mean, mass = before
    mass = 1.0 + decay * mass
    return mean + (score - mean) / mass, mass


def binomial_interval(hits: int, count: int) -> tuple[float, float]:
    """Exact 95 % confidence interval of a share after `hits` in `count` trials, in billionths (Clopper-Pearson)."""
    tail = 0.025

    def share_with(tail: float, hits: int) -> float:
        return bisect_left(range(1, BILLION), tail, key=lambda share: at_least(hits, count, share / BILLION)) / BILLION

    low = share_with(tail, hits) if hits else 0.0
    return low, share_with(1 - tail, hits + 1) if hits < count else 1.0


def at_least(hits: int, count: int, share: float) -> float:
    """P(X >= hits) of a binomial distribution; in logarithms, since binomial coefficients of 1,030 overflow."""
    whole, yes, no = math.lgamma(count + 1), math.log(share), math.log1p(-share)
    logs = (
        whole - math.lgamma(k + 1) - math.lgamma(count - k + 1) + k * yes + (count - k) * no
        for k in range(hits, count + 1)
    )
    return sum(map(math.exp, logs))
