"""The figures of the study, from what `collect` kept of every picture; nothing here chooses or fits what the product
uses."""

import pickle
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import torch

from steadyseg.core.familiarity.gaussians import GaussianSums
from steadyseg.core.familiarity.statistics import FrameDistance
from steadyseg.core.reference import ReferenceScores, binomial_interval
from steadyseg.studies.harness.ood_detection import auroc

Row = dict[str, Any]
FOREIGN = ("motorways", "objects", "no_pictures", "street")
DRIVES = ("0001TP", "Seq05VD")
NEIGHBOURS = 5


class Bank:
    """Mean features of the training frames, as they are and as another camera would give them: baselines."""

    def __init__(self, rows: Sequence[dict[str, Any]], scored: Sequence[str]) -> None:
        self.rows, self.scored = rows, scored
        self.fitted = cache(self._fit)
        deepest = np.stack([row["pooled"][scored[0]] for row in rows])
        self.mean, self.deviation = deepest.mean(0), deepest.std(0) + 1e-6
        self.neighbours = (deepest - self.mean) / self.deviation

    def _fit(self, stage: str, cameras: bool) -> FrameDistance:
        sums = GaussianSums(len(self.rows[0]["pooled"][stage]), 1)
        for row in self.rows:
            if cameras or row["kind"] == "clean":
                sums.update(torch.from_numpy(row["pooled"][stage])[None], torch.zeros(1, dtype=torch.long))
        return FrameDistance.of(sums.fit())

    def distances(self, rows: Sequence[dict[str, Any]], stage: str, cameras: bool = True) -> np.ndarray:
        """(N,) log Mahalanobis distances."""
        with torch.inference_mode():
            found = self.fitted(stage, cameras)(torch.from_numpy(np.stack([row["pooled"][stage] for row in rows])))
        return found.double().numpy()

    def scores(self, rows: Sequence[dict[str, Any]]) -> dict[str, np.ndarray]:
        """Scores that are higher for what is novel."""
        first, last = self.scored[0], self.scored[-1]
        features = (np.stack([row["pooled"][first] for row in rows]) - self.mean) / self.deviation
        apart = np.sqrt(((features[:, None] - self.neighbours[None]) ** 2).mean(2))
        return {
            "distance, last stage": self.distances(rows, last),
            "the same, cameras not shown": self.distances(rows, last, cameras=False),
            f"{NEIGHBOURS} nearest neighbours": np.sort(apart, 1)[:, NEIGHBOURS - 1],
        }


class Collected:
    """One network's pictures by group."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.name = folder, folder.name
        self.about = self.group("about")
        self.reference = ReferenceScores(tuple(self.about["familiarity"]["scores"]))
        self.bank = Bank(self.group("bank"), self.about["familiarity"]["stages"])

    def group(self, name: str) -> Any:
        return pickle.loads((self.folder / f"{name}.pickle").read_bytes())

    def alarms(self, rows: Sequence[Row]) -> int:
        return sum(self.reference.is_novel(row["score"]) for row in rows)

    def scores(self, rows: Sequence[Row]) -> dict[str, np.ndarray]:
        """Scores that are higher for what is novel."""
        return {
            "familiarity": np.array([row["score"] for row in rows]),
            "entropy": np.array([row["entropy"] for row in rows]),
            "max-logit": np.array([-row["max_logit"] for row in rows]),
            "energy": np.array([-row["energy"] for row in rows]),
        } | self.bank.scores(rows)


def by_kind(rows: Sequence[Row]) -> dict[str, list[Row]]:
    kinds: dict[str, list[Row]] = {}
    for row in rows:
        kinds.setdefault(row["kind"], []).append(row)
    return kinds


def measure(folder: Path) -> dict[str, Any]:
    """All figures of one network."""
    seen = Collected(folder)
    test, val, controls = (seen.group(name) for name in ("test", "val", "controls"))
    inside = seen.scores(test)
    drives = {drive: [row for row in test if row["name"].startswith(drive)] for drive in DRIVES}

    def against_test(rows: Sequence[Row]) -> dict[str, Any]:
        return {
            "pictures": len(rows),
            "alarms": seen.alarms(rows) / len(rows),
            "auroc": aurocs(inside, seen.scores(rows)),
        }

    return {
        "weights": seen.about["weights"],
        "rests_on": seen.about["rests_on"],
        "every": seen.about["every"],
        "stages": list(seen.about["familiarity"]["stages"]),
        "own_alarms": interval(seen, seen.group("held_out")),
        "alarms": {name: interval(seen, rows) for name, rows in {**drives, "val": val}.items()},
        "mild_alarms": interval(seen, controls),
        "foreign": {kind: against_test(rows) for group in FOREIGN for kind, rows in by_kind(seen.group(group)).items()},
        "controls": {
            kind: against_test(rows)
            | {"accuracy": mean_of(rows, "accuracy"), "clean_accuracy": mean_of(same_stills(test, rows), "accuracy")}
            for kind, rows in by_kind(controls).items()
        },
    }


def mean_of(rows: Sequence[Row], key: str) -> float:
    return float(np.mean([row[key] for row in rows]))


def same_stills(clean: Sequence[Row], rows: Sequence[Row]) -> list[Row]:
    names = {row["name"] for row in rows}
    return [row for row in clean if row["name"] in names] or list(clean)


def interval(seen: Collected, rows: Sequence[Row]) -> dict[str, Any]:
    hits = seen.alarms(rows)
    return {"frames": len(rows), "alarms": hits / len(rows), "interval": binomial_interval(hits, len(rows))}


def aurocs(inside: dict[str, np.ndarray], outside: dict[str, np.ndarray]) -> dict[str, float]:
    return {name: auroc_of(inside[name], outside[name]) for name in inside}


def auroc_of(inside: np.ndarray, outside: np.ndarray) -> float:
    return auroc(torch.from_numpy(inside), torch.from_numpy(outside))
