"""Compares the frames that `steadyseg pick` chooses of CamVid's test with all frames: are their labels worth more?

    python -m steadyseg.studies.labelling.chosen ../shared/data/camvid

Measures the share of wrong pixels and the share of rare classes in the chosen frames, and how the criteria follow the
share of wrong pixels. Writes docs/studies/labelling/chosen.json; two minutes of one core.
"""

from pathlib import Path
from typing import Any

import numpy as np

from steadyseg.app.labelling.candidates import Candidate, FrameMeter, choose
from steadyseg.app.open_model import open_checkpoint
from steadyseg.core.classes import CAMVID
from steadyseg.seg.data.camvid import open_split
from steadyseg.seg.data.held_out import recording_of
from steadyseg.seg.selection import mean_ranks
from steadyseg.studies.labelling.networks import measure_missing

NETWORKS = ("camvid-realtime",)
CHOSEN = 20
RARE = ("Pole", "SignSymbol", "Pedestrian", "Bicyclist")
RECORD = "chosen.json"


def main() -> None:
    measure_missing("chosen", RECORD, {name: name for name in NETWORKS}, measure)


def measure(name: str, data: Path) -> dict[str, Any]:
    """Returns shares of wrong pixels and of rare classes in all frames and in the chosen ones, and correlations."""
    split, meter = open_split(data, "test"), FrameMeter(open_checkpoint(name))
    recordings = list(dict.fromkeys(recording_of(example.name) for example in split.examples))
    candidates, wrong, rare = list[Candidate](), list[float](), list[float]()
    for number, example in enumerate(split.examples):
        image, label = split[number]
        features, criteria, maps = meter.measure(image, number)
        recording = recordings.index(recording_of(example.name))
        candidates.append(Candidate(recording, number, float(number), features, criteria))
        known = label != CAMVID.void
        wrong.append(float((maps.label != label)[known].mean()))
        rare.append(float(np.isin(label[known], [CAMVID.names.index(one) for one in RARE]).mean()))
    places = [one.place for one in choose(candidates, CHOSEN, [])]
    columns = {key: np.array([one.criteria[key] for one in candidates]) for key in candidates[0].criteria}
    columns["score"] = mean_ranks(np.stack(list(columns.values()), 1))
    return {
        "frames": len(split),
        "wrong": {"all": np.mean(wrong), "chosen": np.mean(np.array(wrong)[places])},
        "rare": {"all": np.mean(rare), "chosen": np.mean(np.array(rare)[places])},
        "correlation": {key: rank_correlation(values, np.array(wrong)) for key, values in columns.items()},
    }


def rank_correlation(one: np.ndarray, other: np.ndarray) -> float:
    """Spearman's rank correlation; equal values have the mean of their ranks."""
    return float(np.corrcoef(mean_rank(one), mean_rank(other))[0, 1])


def mean_rank(values: np.ndarray) -> np.ndarray:
    _, places, counts = np.unique(values, return_inverse=True, return_counts=True)
    return (counts.cumsum() - (counts - 1) / 2)[places]


if __name__ == "__main__":
    main()
