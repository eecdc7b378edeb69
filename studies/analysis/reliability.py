"""The study `reliability`: how honest confidence is by class, distance from a boundary, region size and familiarity."""

import math
from collections.abc import Iterator, Sequence

import numpy as np
import torch
from torch import Tensor

from steadyseg.core.method import Method
from steadyseg.core.prediction import entropy
from steadyseg.core.seeds import mix_seed
from steadyseg.studies.analysis.measures.regions import DISTANCES, SIZES, distance_groups, interval_names, size_groups
from steadyseg.studies.analysis.measures.reliability import CONFIDENT, GroupTally, scores
from steadyseg.studies.analysis.study import Results, Study, StudyContext
from steadyseg.studies.analysis.subjects import StudyTarget
from steadyseg.studies.harness.report_folder import Table, table_of
from steadyseg.studies.harness.target import DNN, at_size_of

ABOUT = (
    "Confidence is the largest probability. `gap` is its mean minus the accuracy: above 0 the network is "
    "over-confident. The ECE is that of 15 bins within the group. `confident errors` is the share of samples that "
    f"are wrong at a confidence above {CONFIDENT:g}. Samples are grouped by true class; by the distance of a pixel "
    "from the nearest boundary of the true labels, in steps; by the size of the region of equal true labels, in "
    "pixels; and by familiarity. The last are five equal groups of pictures by the score of their statistics, or by "
    "their mean entropy where the network has no statistics for the method. Fitted temperatures are used for the "
    "methods that have one."
)
FAMILIARITY_GROUPS = 5


class Reliability:
    """Figures by group of one network with one method."""

    def __init__(self, target: StudyTarget, method: Method, pictures: int) -> None:
        self.target, self.method = target, method
        self.classes = GroupTally(len(target.subject))
        self.distances = GroupTally(len(DISTANCES) + 1)
        self.sizes = GroupTally(len(SIZES) + 1)
        self.pictures = GroupTally(pictures)
        self.familiarity: dict[int, float] = {}
        self.measured_by = "entropy"

    def add(self, number: int, probs: Tensor, truth: Tensor, score: float | None = None) -> None:
        """Adds one picture: probs (1, K, ...) and labels (1, ...) of one size, and its familiarity where the network
        tells it."""
        void = self.target.subject.meta.classes.void
        kept = torch.ones_like(truth, dtype=torch.bool) if void is None else truth != void
        if not bool(kept.any()):
            return
        labels = truth.masked_fill(~kept, 0)
        found = scores(probs, labels)
        keep = kept.flatten()
        self.classes.add(torch.where(keep, labels.flatten(), -1), *found)
        self.pictures.add(torch.where(keep, number, -1), *found)
        if void is not None:
            self.distances.add(distance_groups(truth[0].cpu(), void).flatten().to(truth.device), *found)
            self.sizes.add(size_groups(truth[0], void).flatten().to(truth.device), *found)
        if score is None:
            score = float((entropy(probs) / math.log(probs.shape[1]))[kept].mean())
        else:
            self.measured_by = "score"
        self.familiarity[number] = score

    def rows(self) -> list[Results]:
        """One row for each group of every kind."""
        classes = self.target.subject.meta.classes.names
        ranked = sorted(self.familiarity, key=self.familiarity.__getitem__)
        parts = [list(part) for part in np.array_split(ranked, max(1, min(FAMILIARITY_GROUPS, len(ranked))))]
        names = [f"{place + 1} of {len(parts)}, {self._range_of(part)}" for place, part in enumerate(parts)]
        found = [
            ("all", self.pictures.merged([ranked]), ["all"]),
            ("class", self.classes, list(classes)),
            ("familiarity", self.pictures.merged(parts), names),
        ]
        if self.target.subject.is_segmentation:
            found += [
                ("distance", self.distances, interval_names(DISTANCES)),
                ("size", self.sizes, interval_names(SIZES)),
            ]
        about = {"model": self.target.name, "mode": str(self.method)}
        return [about | {"by": by} | row for by, tally, words in found for row in tally.rows(words)]

    def _range_of(self, part: Sequence[int]) -> str:
        if not part:  # so far all pixels are void
            return "no picture"
        values = [self.familiarity[number] for number in part]
        return f"{self.measured_by} {min(values):.3f} to {max(values):.3f}"


def measure(context: StudyContext) -> Iterator[Results]:
    tallies: list[Reliability] = []
    samples = context.job.samples
    for target in context.targets:
        methods = [DNN, *([Method("bnn", samples)] if target.subject.has_dropout and samples > 1 else [])]
        tallies += [Reliability(target, method, len(target.pictures)) for method in methods]
        if target.subject.calibrated_methods:
            told = ", ".join(map(str, target.subject.calibrated_methods))
            context.note(f"{target.name}: calibrated for {told}; its other methods are as trained")
    for part, numbers in enumerate(context.track(context.batches(), "batches of pictures")):
        for target in context.targets:
            mine = {tally.method: tally for tally in tallies if tally.target is target}
            images = target.pictures.images[numbers.start : numbers.stop]
            truth = target.truth(numbers)
            seed = mix_seed(context.options.seed, part)
            for method, prediction in target.subject.predict(images, list(mine), seed):
                probs = at_size_of(prediction.probs.float(), truth)
                for place, number in enumerate(numbers):
                    score = float(prediction.scores.score[place]) if prediction.scores else None
                    mine[method].add(number, probs[place : place + 1], truth[place : place + 1], score)
        yield {"rows": [row for tally in tallies for row in tally.rows()]}


def tables(results: Results) -> list[Table]:
    columns = (
        *(("network", "model"), ("method", "mode"), ("group", "group"), ("share", "share"), ("accuracy", "accuracy")),
        *(("confidence", "confidence"), ("gap", "gap"), ("ECE", "ece_15"), ("NLL", "nll")),
        ("confident errors", "confident_errors"),
    )
    groups = {title: [row for row in results["rows"] if row["by"] == by] for by, title in TITLES.items()}
    return [table_of(title, columns, rows) for title, rows in groups.items() if rows]


TITLES = {
    "all": "All samples",
    "class": "By true class",
    "distance": "By distance from a boundary, pixels",
    "size": "By size of the region, pixels",
    "familiarity": "By familiarity of the picture",
}


STUDY = Study("reliability", "Reliability by group", ABOUT, measure, tables, (1000, 30))
