"""How often the sequential alarm is wrong at home and how soon it tells another place, from kept scores.

    python -m steadyseg.studies.familiarity.alarm

Reads OUT/NETWORK/alarm.pickle of studies.familiarity.alarm_scores and writes docs/records/familiarity/alarms.json.
"""

import argparse
import math
import pickle
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from steadyseg.core.alarm import PlaceAlarm
from steadyseg.core.reference import ReferenceScores, binomial_interval, smooth_score
from steadyseg.studies.familiarity.alarm_streams import HZ
from steadyseg.studies.familiarity.by_network import OUT
from steadyseg.studies.harness.pages import write_page
from steadyseg.studies.harness.study import PAGES, origin, read_record_file, round_figures, write_record

TAU = 8.0
"""Frames, of the default method: scores are averaged over time as in the product."""
SOON_S = 5.0
"""Seconds within which another place is to be told."""


class Watched(NamedTuple):
    """A stream as the alarm sees it."""

    seconds: float
    alarms: tuple[float, ...]
    """Seconds from the start of the stream to each alarm."""
    shares: np.ndarray
    """(N,) familiarity of its frames."""


def watch(rows: np.ndarray, reference: ReferenceScores) -> Watched:
    """(N, 2) frame index and score -> what the product tells of the stream; no scene is cut inside it.

    Where frames are less than a second apart, scores in between are interpolated to every frame of `HZ`. Where they are
    further apart, scores are interpolated to one a second.
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
    return Watched(len(rows) * step_s, tuple(alarms), np.array(shares))


def dense(rows: np.ndarray) -> np.ndarray:
    """(N, 2) -> (M, 2)"""
    step = np.diff(rows[:, 0]).max() if len(rows) > 1 else HZ
    if step == HZ:
        return rows
    places = np.arange(rows[0, 0], rows[-1, 0] + 1, HZ if step > HZ else 1)
    return np.stack([places, np.interp(places, rows[:, 0], rows[:, 1])], 1)


def measure(kept: dict[str, Any]) -> dict[str, Any]:
    """By kind of stream: how many, their seconds, alarms, and how many told no alarm in 5 s."""
    reference = ReferenceScores(tuple(kept["familiarity"]["scores"]))
    watched = {name: watch(rows, reference) for name, rows in kept["streams"].items()}
    kinds: dict[str, list[Watched]] = {}
    for name, stream in watched.items():
        kinds.setdefault(kind_of(name), []).append(stream)
    return {
        "rests_on": kept["rests_on"],
        "reference": len(reference.scores),
        "kinds": {kind: figures(streams) for kind, streams in kinds.items()},
        "streams": {name: figures([stream]) for name, stream in watched.items()},
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


def main() -> None:
    """Writes the figures of each network in place of its earlier ones."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--from", dest="folder", type=Path, default=OUT)
    folder, record = parser.parse_args().folder, PAGES / "familiarity" / "alarms.json"
    found = {one.parent.name: measure(pickle.loads(one.read_bytes())) for one in folder.glob("*/alarm.pickle")}
    write_record(record, round_figures(read_record_file(record) | found), sort=True)
    write_page("familiarity")


if __name__ == "__main__":
    main()
