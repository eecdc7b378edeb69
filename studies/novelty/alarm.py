"""How often the sequential alarm is wrong at home and how soon it tells another place, from kept scores.

    python -m steadyseg.studies.novelty.alarm

Reads OUT/NETWORK/alarm.pickle of studies.novelty.alarm_scores and writes docs/studies/novelty/alarms.json.
"""

from typing import Any

import numpy as np

from steadyseg.core.reference import ReferenceScores, binomial_interval
from steadyseg.studies.harness.study import origin
from steadyseg.studies.novelty.alarm_choice import compare, evidence, shipped
from steadyseg.studies.novelty.alarm_watch import LAGS, SOON_S, Watched, watch
from steadyseg.studies.novelty.by_network import write_figures


def measure(kept: dict[str, Any]) -> dict[str, Any]:
    """By kind of stream: how many, their seconds, alarms, and how many told no alarm in 5 s."""
    reference = ReferenceScores(tuple(kept.get("trained") or kept["novelty"]["scores"]))
    watched = {name: watch(rows, reference) for name, rows in kept["streams"].items()}
    kinds: dict[str, list[Watched]] = {}
    for name, stream in watched.items():
        kinds.setdefault(kind_of(name), []).append(stream)
    drives, choice = (
        [one for name, one in watched.items() if name.startswith(part)] for part in ("report drive", "choice drive")
    )
    changed = [one for name, one in watched.items() if name.startswith("choice street")]
    return {
        "rests_on": kept["rests_on"],
        "reference": len(reference.scores),
        "kinds": {kind: figures(streams) for kind, streams in kinds.items()},
        "streams": {name: figures([stream]) for name, stream in watched.items()},
        **({"correlation": correlations(choice + drives), "choice": compare(choice, changed)} if choice else {}),
    } | origin()


def kind_of(name: str) -> str:
    """`val: gamma 1.3` is of the kind `val mild`."""
    kind, _, which = name.partition(": ")
    return f"{kind} mild" if kind in ("val", "test stills") and which != "unchanged" else kind


def figures(streams: list[Watched]) -> dict[str, Any]:
    alarms, hours = sum(len(one.alarms) for one in streams), sum(one.seconds for one in streams) / 3600
    return {
        "streams": len(streams),
        "hours": hours,
        "alarms": alarms,
        "an_hour_at_most": upper_rate(alarms, hours),
        "delay_s": min((one.alarms[0] for one in streams if one.alarms), default=None),
        "missed": sum(not one.alarms or one.alarms[0] > SOON_S for one in streams),
        "familiarity_p50": float(np.median(np.concatenate([one.shares for one in streams]))),
    }


def upper_rate(events: int, hours: float) -> float:
    """The rate an hour below which it lies with 95 % confidence, were the seconds independent."""
    return 3600 * binomial_interval(events, max(1, round(3600 * hours)), 0.9)[1]


def correlations(drives: list[Watched]) -> dict[str, list[float]]:
    """Correlation of the log e-values of two blocks by the seconds between them, over all drives, and about the mean of
    each drive."""
    blocks = np.stack([evidence(one, shipped) for one in drives])
    return {"over drives": lagged(blocks - blocks.mean()), "within": lagged(blocks - blocks.mean(1, keepdims=True))}


def lagged(blocks: np.ndarray) -> list[float]:
    return [float((blocks[:, lag:] * blocks[:, :-lag]).mean() / (blocks**2).mean()) for lag in LAGS]


if __name__ == "__main__":
    write_figures(__doc__, "alarm", "alarms", measure)
