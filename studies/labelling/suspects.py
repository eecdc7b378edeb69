"""Measures how well labels that were damaged on purpose are found in CamVid's test, which the networks never saw.

    python -m steadyseg.studies.labelling.suspects ../shared/data/camvid

Damages one object in each of 60 pictures (of 147): another class, a shifted mask, or none where one was. A suspect
region is a hit if at least half of its pixels were changed. Writes docs/studies/labelling/suspects.json; what is there
already is kept. Ten minutes of one core.
"""

import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from steadyseg.app.executors import RunOptions
from steadyseg.app.labelling.suspects import LabelCheck
from steadyseg.app.open_model import make_segmenter, open_model
from steadyseg.core.method import MethodOptions
from steadyseg.seg.data.camvid import ImageFolderSplit, open_split
from steadyseg.seg.label_errors import ConfidentJoint, Suspect, find_suspects
from steadyseg.studies.labelling.damage import DAMAGES, damaged
from steadyseg.studies.labelling.networks import measure_missing

PARTS = (("camvid-realtime", "test"), ("camvid-mobile", "test"), ("camvid-realtime", "val"))
"""Network and split."""
OBJECTS, SEEDS = 60, (0, 1, 2)
RECORD = "suspects.json"


class Judged(NamedTuple):
    """A suspect region of damaged labels."""

    suspect: Suspect
    picture: int
    changed: float
    """Share of its pixels that were damaged."""


def without_habits(found: Sequence[Suspect]) -> list[int]:
    """Ranks by -ln(self-confidence) / habit^(1/4), where the habit is the number of regions with the same label and
    suggestion; chosen on val."""
    habits = Counter((one.label, one.suggested) for one in found)
    scores = [-math.log(max(one.self_confidence, 1e-4)) / habits[one.label, one.suggested] ** 0.25 for one in found]
    return np.argsort(-np.array(scores)).tolist()


Ranking = Callable[[Sequence[Suspect]], Sequence[int]]
RANKINGS: dict[str, Ranking] = {
    "self-confidence": lambda found: np.argsort([one.self_confidence for one in found]).tolist(),
    "normalised margin": lambda found: np.argsort([one.self_confidence - one.confidence for one in found]).tolist(),
    "frequent pairs later": without_habits,
}
"""Cleanlab's two scores, the first of which `steadyseg suspects` sorts by, and one that was not taken."""


def main() -> None:
    measure_missing("suspects", RECORD, {f"{name} {split}": name for name, split in PARTS}, measure_part)


def measure_part(part: str, data: Path) -> dict[str, Any]:
    name, split = part.split()
    return measure(name, open_split(data, split))


def measure(name: str, split: ImageFolderSplit) -> dict[str, Any]:
    """Returns by damage and ranking the precision and the recall at n of each seed."""
    segmenter = make_segmenter(open_model(name), MethodOptions(mode="dnn"), RunOptions(keep_probs=True))
    check, clean = LabelCheck(split, segmenter), [split[number][1] for number in range(len(split))]
    versions = {
        (damage, seed): damaged(clean, make, OBJECTS, seed, len(split.classes))
        for damage, make in DAMAGES.items()
        for seed in SEEDS
    }
    joints = {key: ConfidentJoint(len(split.classes)) for key in versions}
    for number, probs in enumerate(all_probs(check)):
        for key, labels in versions.items():
            joints[key].add_to_thresholds(probs, labels[number])
    found: dict[tuple[str, int], list[Judged]] = {key: [] for key in versions}
    for number, probs in enumerate(all_probs(check)):
        for key, labels in versions.items():
            confident = joints[key].confident_classes(probs)
            found[key] += judge(number, confident, probs, labels[number], clean[number])
    return {
        damage: {
            "regions": [len(found[damage, seed]) for seed in SEEDS],
            "hits": [sum(one.changed >= 0.5 for one in found[damage, seed]) for seed in SEEDS],
            **{way: at_n([found[damage, seed] for seed in SEEDS], rank) for way, rank in RANKINGS.items()},
        }
        for damage in DAMAGES
    }


def all_probs(check: LabelCheck) -> Iterator[np.ndarray]:
    """Yields the probabilities (K, H, W) of every picture."""
    return (check.probs(check.split[number][0]) for number in range(len(check.split)))


def judge(
    number: int, confident: np.ndarray, probs: np.ndarray, label: np.ndarray, clean: np.ndarray
) -> Iterator[Judged]:
    """Yields the suspect regions of one picture."""
    changed = label != clean
    for one in find_suspects(confident, probs, label):
        yield Judged(one, number, float(changed[one.rows, one.columns][one.mask(label, confident)].mean()))


def at_n(by_seed: list[list[Judged]], rank: Ranking) -> dict[str, list[float]]:
    """Precision among the first `OBJECTS` regions, and the share of the damaged objects that they show, by seed."""
    precision, recall = [], []
    for found in by_seed:
        first = [found[place] for place in rank([one.suspect for one in found])[:OBJECTS]]
        hits = [one.picture for one in first if one.changed >= 0.5]
        precision.append(len(hits) / len(first))
        recall.append(len(set(hits)) / OBJECTS)
    return {"precision": precision, "recall": recall}


if __name__ == "__main__":
    main()
