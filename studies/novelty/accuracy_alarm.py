"""The statement that the expected accuracy is low: how often and how soon it is made, and how true it is.

    python -m steadyseg.studies.novelty.accuracy_alarm

Reads OUT/NETWORK/accuracy.pickle of studies.novelty.accuracy_rows and writes docs/studies/novelty/low_accuracy.json.
"""

from statistics import median
from typing import Any, NamedTuple

import numpy as np

from steadyseg.core.alarm import LOW_BLOCKS, LowAccuracy
from steadyseg.core.reference import NOVEL
from steadyseg.studies.harness.study import origin
from steadyseg.studies.novelty.accuracy_rows import STEP
from steadyseg.studies.novelty.alarm_streams import HZ
from steadyseg.studies.novelty.by_network import write_figures

LIMITS = (0.7, 0.8, 0.9)
STEP_S = STEP / HZ


class Told(NamedTuple):
    """A stream with the statement; arrays (N,) by frame."""

    said: np.ndarray
    """True while the statement is shown: of a novel frame nothing is."""
    novel: np.ndarray
    accuracy: np.ndarray
    """Of all frames of the same second; NaN without labels."""
    delay_s: float | None
    """Seconds from the start of the stream to the first statement."""
    onsets: int


def tell(rows: np.ndarray, limit: float) -> Told:
    """(N, 4) as of `accuracy_rows.look` -> what the product says of the stream."""
    watch = LowAccuracy(LOW_BLOCKS)
    novel, on, onsets, was_on = rows[:, 1] <= NOVEL, [], 0, False
    for (time_s, _, confidence, _), is_novel in zip(rows, novel, strict=True):
        if not is_novel:
            is_on = watch.update(confidence, time_s, limit) is not None
            onsets += is_on and not was_on
            was_on = is_on
        on.append(was_on and not is_novel)
    seconds = np.floor(rows[:, 0]).astype(int)
    sums, counts = np.bincount(seconds, rows[:, 3]), np.bincount(seconds)
    said = np.array(on)
    first = float(rows[said.argmax(), 0]) if said.any() else None
    return Told(said, novel, (sums / np.maximum(counts, 1))[seconds], first, onsets)


def figures(streams: list[np.ndarray], limit: float) -> dict[str, Any]:
    """Seconds of the streams: said, true among them, low without being said though no frame was novel."""
    told = [tell(rows, limit) for rows in streams]
    said, novel, accuracy = (
        np.concatenate([getattr(one, name) for one in told]) for name in ("said", "novel", "accuracy")
    )
    low, known = accuracy < limit, ~np.isnan(accuracy)
    delays = [one.delay_s for one in told if one.delay_s is not None]
    return {
        "streams": len(told),
        "seconds": len(said) * STEP_S,
        "told": len(delays),
        "onsets": sum(one.onsets for one in told),
        "delay_s": median(delays) if delays else None,
        "said_s": float(said.sum() * STEP_S),
        "true": float(low[said & known].mean()) if (said & known).any() else None,
        "accuracy_said": float(accuracy[said & known].mean()) if (said & known).any() else None,
        "novel_s": float(novel.sum() * STEP_S),
        "low_s": float((low & known).sum() * STEP_S),
        "low_novel_s": float((low & known & novel).sum() * STEP_S),
        "low_said_s": float((low & known & said).sum() * STEP_S),
    }


def measure(kept: dict[str, Any]) -> dict[str, Any]:
    kinds: dict[str, list[np.ndarray]] = {}
    for name, rows in kept["streams"].items():
        kind, _, which = name.partition(": ")
        kind = which if kind == "motorway" else "val mild" if kind == "val" and which != "unchanged" else kind
        kinds.setdefault(kind, []).append(rows)
    told = {kind: {f"{limit}": figures(streams, limit) for limit in LIMITS} for kind, streams in kinds.items()}
    return {"rests_on": kept["rests_on"], **origin(), "kinds": told}


if __name__ == "__main__":
    write_figures(__doc__, "accuracy", "low_accuracy", measure)
