"""A stream as the alarm sees it, from the scores of its frames."""

import math
from typing import NamedTuple

import numpy as np

from steadyseg.core.alarm import PlaceAlarm
from steadyseg.core.reference import ReferenceScores, smooth_score
from steadyseg.studies.novelty.alarm_streams import HZ

TAU = 8.0
"""Frames, of the default method: scores are averaged over time as in the product."""
SOON_S = 5.0
"""Seconds within which another place is to be told."""
LAGS = (1, 2, 5, 10, 30, 60)
"""Seconds between two blocks whose correlation is measured."""


class Watched(NamedTuple):
    """A stream as the alarm sees it."""

    seconds: float
    alarms: tuple[float, ...]
    """Seconds from the start of the stream to each alarm."""
    shares: np.ndarray
    """(N,) novelty of its frames."""
    times_s: np.ndarray
    """(N,)"""


def watch(rows: np.ndarray, reference: ReferenceScores) -> Watched:
    """(N, 2) frame index and score -> what the product tells of the stream; no scene is cut inside it.

    Where frames are not a second apart, as stills are, scores in between are interpolated: to every frame of `HZ`, or
    to one a second where they are further apart.
    """
    rows = dense(rows)
    alarm, state, before = PlaceAlarm(), (0.0, 0.0), math.nan
    shares: list[float] = []
    alarms: list[float] = []
    was_on = False
    for index, score in rows:
        decay = math.exp((before - index) / TAU) if shares else 0.0
        state = smooth_score(reference.bounded(score), state, decay)
        shares.append(reference.share(state[0]))
        is_on = alarm.update(shares[-1], index / HZ) is not None
        if is_on and not was_on:
            alarms.append(float(index / HZ))
        was_on, before = is_on, index
    step_s = (rows[-1, 0] - rows[0, 0]) / HZ / max(1, len(rows) - 1)
    return Watched(len(rows) * step_s, tuple(alarms), np.array(shares), rows[:, 0] / HZ)


def dense(rows: np.ndarray) -> np.ndarray:
    """(N, 2) -> (M, 2)"""
    step = np.diff(rows[:, 0]).max() if len(rows) > 1 else HZ
    if step == HZ:
        return rows
    places = np.arange(rows[0, 0], rows[-1, 0] + 1, HZ if step > HZ else 1)
    return np.stack([places, np.interp(places, rows[:, 0], rows[:, 1])], 1)
