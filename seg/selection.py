"""Choice of frames to label next: scores by several criteria, and a greedy choice spread over features and time."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

GAPS = 4
"""The smallest time between two chosen frames of a recording is the mean time between them, divided by this."""


class Chosen(NamedTuple):
    """A chosen frame."""

    place: int
    """Its row in the features."""
    distance: float
    """Distance of its features to the nearest labelled or earlier chosen frame, 1 being the mean of all pairs; infinite
    for a first frame."""


def mean_ranks(criteria: Iterable[np.ndarray]) -> np.ndarray:
    """Returns (N,) scores in (0, 1]: the mean of each frame's ranks by the criteria, (N,) each, where more is better.
    The rank is the share of all frames whose value is at most that of the frame."""
    ranks = [np.searchsorted(np.sort(values), values, side="right") / len(values) for values in criteria]
    return np.asarray(np.mean(ranks, axis=0))


def standardise(stages: Sequence[np.ndarray]) -> np.ndarray:
    """Features of each stage, (N, C) -> (N, D) in which two frames have a mean squared distance of 1.

    Every channel has unit deviation over the N frames, and every stage the same part in the distance.
    """
    parts = []
    for features in stages:
        deviation = features.std(0)
        scaled = (features - features.mean(0)) / np.where(deviation > 1e-9, deviation, 1.0)
        parts.append(scaled / np.sqrt(2 * len(stages) * features.shape[1]))
    return np.concatenate(parts, axis=1)


def choose_frames(
    features: np.ndarray,
    scores: np.ndarray,
    recordings: np.ndarray,
    times_s: np.ndarray,
    count: int,
    labelled: np.ndarray | None = None,
) -> list[Chosen]:
    """Chooses `count` frames one by one, each with the largest product of score and distance to the nearest frame that
    is labelled or chosen already: greedy k-centre (Sener and Savarese 2018, arXiv 1708.00489) weighted by the score.

    Args:
        features: (N, D), as `standardise` gives them.
        scores: (N,) in (0, 1].
        recordings, times_s: (N,) number of the recording and time in it. Two chosen frames of a recording are apart by
            at least the mean time between chosen frames, divided by `GAPS`.
        labelled: (M, D) features of frames that are labelled already.

    Returns fewer than `count` frames if there are no more.
    """
    gap_s = _duration(recordings, times_s) / (GAPS * count)
    nearest = np.full(len(features), np.inf)
    for centre in labelled if labelled is not None else ():
        nearest = np.minimum(nearest, _distances(features, centre))
    free, chosen = np.ones(len(features), bool), list[Chosen]()
    while free.any() and len(chosen) < count:
        value = scores * (nearest if np.isfinite(nearest).all() else 1.0)
        place = int(np.where(free, value, -1.0).argmax())
        chosen.append(Chosen(place, float(nearest[place])))
        nearest = np.minimum(nearest, _distances(features, features[place]))
        free &= (recordings != recordings[place]) | (abs(times_s - times_s[place]) >= gap_s)
        free[place] = False
    return chosen


def _distances(features: np.ndarray, centre: np.ndarray) -> np.ndarray:
    return np.asarray(np.sqrt(((features - centre) ** 2).sum(1)))


def _duration(recordings: np.ndarray, times_s: np.ndarray) -> float:
    """Seconds from the first to the last frame, added over all recordings."""
    return float(sum(np.ptp(times_s[recordings == number]) for number in np.unique(recordings)))
