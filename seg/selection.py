"""Choice of frames to label next: scores by several criteria, and a greedy choice spread over features and time."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

GAPS = 4
"""The smallest time between two chosen frames of a recording is the mean time between them, divided by this."""


class Chosen(NamedTuple):
    """A chosen frame."""

    place: int
    """Its row in the features."""
    distance: float
    """Distance of its features to the nearest frame that is labelled or was chosen before; infinite if there is no such
    frame."""


def mean_ranks(criteria: np.ndarray) -> np.ndarray:
    """Returns (N,) scores in (0, 1] of (N, C) criteria, higher is better: the mean rank of each frame. A rank is the
    share of all frames whose value is at most the frame's."""
    ranks = [np.searchsorted(np.sort(values), values, side="right") for values in criteria.T]
    return np.asarray(np.mean(ranks, axis=0) / len(criteria))


def standardise(stages: Sequence[np.ndarray]) -> np.ndarray:
    """Features of each stage, (N, C) -> (N, D). Within a stage, every channel has the same deviation. Every stage adds
    the same to the mean squared distance of two frames, which is 1."""
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
    labelled: np.ndarray,
) -> list[Chosen]:
    """Chooses `count` frames one by one, by the largest product of score and distance to the nearest labelled or chosen
    frame. This is greedy k-centre (Sener and Savarese 2018, arXiv 1708.00489) weighted by the score.

    Args:
        features: (N, D), as `standardise` gives them.
        scores: (N,) in (0, 1]. Without labelled frames the first choice is by score alone.
        recordings, times_s: (N,) number of the recording and time in it. Two chosen frames of a recording are apart by
            at least the mean time between chosen frames, divided by `GAPS`.
        labelled: (M, D) features of frames that are labelled already.

    Returns fewer than `count` frames if there are no more.
    """
    duration_s = sum(np.ptp(times_s[recordings == number]) for number in np.unique(recordings))
    nearest = np.full(len(features), np.inf)
    for centre in labelled:
        nearest = np.minimum(nearest, np.linalg.norm(features - centre, axis=1))
    free, chosen = np.ones(len(features), bool), list[Chosen]()
    while free.any() and len(chosen) < count:
        value = scores * np.where(np.isfinite(nearest), nearest, 1.0)
        place = int(np.where(free, value, -1.0).argmax())
        chosen.append(Chosen(place, float(nearest[place])))
        nearest = np.minimum(nearest, np.linalg.norm(features - features[place], axis=1))
        free &= (recordings != recordings[place]) | (abs(times_s - times_s[place]) >= duration_s / (GAPS * count))
        free[place] = False
    return chosen
