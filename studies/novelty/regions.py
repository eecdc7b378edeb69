"""Foreign objects in a street: how well each score finds their pixels, and their regions.

    python -m steadyseg.studies.novelty.regions --data ../shared/data street-tiny camvid-unet-s camvid-realtime

A score is chosen on small photographs pasted into the 40 stills that the trainings held out (street-tiny: into other
streets), and so is its threshold: that of the highest F1 of pixels. Reported are photographs of other kinds on test
stills and on streets that nothing was chosen on. The classes that a training left out are in left_out.py.
"""

from collections.abc import Iterable
from typing import Any

import numpy as np
import torch
from torch import Tensor

from steadyseg.seg.pretrained import read_segmenter
from steadyseg.studies.harness.networks import rests_on
from steadyseg.studies.harness.ood_detection import auroc
from steadyseg.studies.novelty.by_network import is_of_streets, run
from steadyseg.studies.novelty.pasted import OBJECT, VOID, chosen_objects, pasted, reported_objects, stills, streets
from steadyseg.studies.novelty.region_figures import (
    average_precision,
    best_threshold,
    component_f1,
    fpr_at_95,
    overlaps,
    regions,
)
from steadyseg.studies.novelty.region_scores import RegionScores
from steadyseg.studies.novelty.samples import Data, Sample, of_split, spread_over

TRAIN_FRAMES = 24
"""Pictures of the training domain that means are of."""
OBSERVED = 160
"""Pictures of the training domain that the observer learns from."""
TRAINED, CHOICE, REPORT, COUNT = 1000, 5000, 5500, 60
"""First seeds of the streets that street-tiny was trained on, of those for choosing and of those reported; how many."""


def measure(model: str, data: Data) -> dict[str, Any]:
    opened = read_segmenter(model)
    scores = RegionScores(opened)
    if is_of_streets(model):
        size = opened.meta.height, opened.meta.width
        domain, choice, report = (
            streets(first, size, count) for first, count in ((TRAINED, OBSERVED), (CHOICE, COUNT), (REPORT, COUNT))
        )
    else:
        domain, choice, report = trained_stills(data), list(of_split(data, "train", data.held_out)), stills(data)
    learn(scores, domain)
    chosen = Columns(scores, pasted(choice, chosen_objects(data)))
    thresholds = chosen.thresholds()
    home = Columns(scores, (Sample("home", name, image, 0 * label) for name, image, label in report))
    return {
        "rests_on": rests_on(model, data.digest),
        "choice": chosen.figures(thresholds),
        "report": Columns(scores, pasted(report, reported_objects(data))).figures(thresholds),
        "home": {"pictures": len(home.truths), "regions": home.regions(thresholds)},
    }


def trained_stills(data: Data) -> list[tuple[str, np.ndarray, np.ndarray]]:
    """Stills of train that no training holds out."""
    places = sorted(set(range(len(data.split("train")))) - set(data.held_out))
    return list(of_split(data, "train", [places[at] for at in spread_over(len(places), OBSERVED)]))


def learn(scores: RegionScores, domain: list[tuple[str, np.ndarray, np.ndarray]]) -> None:
    """Trains the observer on all pictures of the domain, and fits the other scores on `TRAIN_FRAMES` of them."""
    pictures = [(image, label) for _, image, label in domain]
    scores.observer.train(pictures, seed=0)
    scores.fit([pictures[place] for place in spread_over(len(pictures), TRAIN_FRAMES)])


class Columns:
    """Every score of every picture; labels as `pasted` has them."""

    def __init__(self, scores: RegionScores, samples: Iterable[Sample]) -> None:
        self.truths: list[Tensor] = []
        self.kinds: list[str] = []
        self.maps: dict[str, list[Tensor]] = {}
        for sample in samples:
            seen = scores.look(sample.image)
            assert sample.label is not None
            self.truths.append(scores.truth(sample.label, seen))
            self.kinds.append(sample.kind)
            for name, found in scores(seen).items():
                self.maps.setdefault(name, []).append(found.float())

    def flat(self, name: str) -> tuple[Tensor, Tensor]:
        """(N,) scores and (N,) whether each is of an object, over the pixels of all pictures that are not void."""
        kept = torch.stack(self.truths) != VOID
        return torch.stack(self.maps[name])[kept].double(), (torch.stack(self.truths) == OBJECT)[kept]

    def thresholds(self) -> dict[str, float]:
        return {name: best_threshold(*self.flat(name)) for name in self.maps}

    def found(self, name: str, threshold: float) -> list[np.ndarray]:
        """(h, w) bool of each picture."""
        pairs = zip(self.maps[name], self.truths, strict=True)
        return [((one >= threshold) & (truth != VOID)).numpy() for one, truth in pairs]

    def regions(self, thresholds: dict[str, float]) -> dict[str, int]:
        """Number of regions that each score finds."""
        return {name: sum(regions(one)[0] for one in self.found(name, at)) for name, at in thresholds.items()}

    def figures(self, thresholds: dict[str, float]) -> dict[str, Any]:
        rows = {}
        for name, threshold in thresholds.items():
            values, truth = self.flat(name)
            pairs = zip(self.found(name, threshold), self.truths, strict=True)
            found = [overlaps(one, (own == OBJECT).numpy()) for one, own in pairs]
            rows[name] = {
                "ap": average_precision(values, truth),
                "auroc": auroc(values[~truth], values[truth]),
                "fpr95": fpr_at_95(values[~truth], values[truth]),
                "f1": component_f1([one for ious, _ in found for one in ious], [one for _, ps in found for one in ps]),
            }
        return {"pictures": len(self.truths), "share": float(truth.double().mean()), "scores": rows}


if __name__ == "__main__":
    run(__doc__, "regions", measure)
