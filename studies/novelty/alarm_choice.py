"""Forms of the sequential alarm, compared on the streets for choosing: how high each rises at home, and how soon it
tells streets under the four corruptions meant for tuning."""

from collections.abc import Callable
from typing import Any

import numpy as np

from steadyseg.core.alarm import LIMIT, e_value
from steadyseg.studies.novelty.alarm_watch import SOON_S, Watched

Calibrator = Callable[[np.ndarray], np.ndarray]
"""Novelty (N,) -> e-values (N,)."""


def shipped(shares: np.ndarray) -> np.ndarray:
    """The form in use."""
    return np.array([e_value(float(share)) for share in shares])


def power(kappa: float) -> Calibrator:
    return lambda shares: kappa * shares ** (kappa - 1)


def step(share: float) -> Calibrator:
    return lambda shares: np.where(shares <= share, 1 / share, 1e-3)


FORMS: dict[str, Calibrator] = {
    "kappa 0.1": power(0.1),
    "kappa 0.25": power(0.25),
    "kappa 0.5": power(0.5),
    "1 / 0.05 up to 0.05": step(0.05),
    "1 / 0.1 up to 0.1": step(0.1),
    "half 1 / 0.1 up to 0.1, half kappa 0.25": shipped,
}


def evidence(stream: Watched, form: Calibrator) -> np.ndarray:
    """Log e-values of the blocks of a second."""
    block = np.floor(stream.times_s - stream.times_s[0]).astype(int)
    counts = np.bincount(block)
    return np.log((np.bincount(block, form(stream.shares)) / np.maximum(counts, 1))[counts > 0])


def compare(drives: list[Watched], changed: list[Watched]) -> dict[str, dict[str, Any]]:
    """By form: alarms an hour of drives, the highest product as a share of the limit's logarithm, and the share of
    changed streets told in time."""
    hours = sum(one.seconds for one in drives) / 3600
    rows = {}
    for name, form in FORMS.items():
        at_home = [rise(evidence(one, form)) for one in drives]
        rows[name] = {
            "alarms_an_hour": sum(onsets(path) for path in at_home) / hours,
            "highest": max(float(path.max()) for path in at_home) / LIMIT,
            "told": float(np.mean([(rise(evidence(one, form))[: int(SOON_S)] >= LIMIT).any() for one in changed])),
        }
    return rows


def rise(logs: np.ndarray) -> np.ndarray:
    """Logarithm of the product after every block."""
    path, total = [], 0.0
    for one in logs:
        total = min(max(total + one, 0.0), LIMIT)
        path.append(total)
    return np.array(path)


def onsets(path: np.ndarray) -> int:
    """Alarms of a stream: each begins at the limit and ends at 0."""
    count, is_on = 0, False
    for value in path:
        count += value >= LIMIT and not is_on
        is_on = value >= LIMIT or (is_on and value > 0)
    return count
