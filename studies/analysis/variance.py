"""The study `variance`: variance of feature maps by depth, over positions, over dropout draws and over both."""

from collections.abc import Iterator, Sequence

import torch
from torch import Tensor

from steadyseg.core.seeds import mix_seed
from steadyseg.studies.analysis.maps import (
    COLUMNS,
    MapTally,
    Place,
    add_batches,
    smoothing_pairs,
    units_with_maps,
    with_sizes,
)
from steadyseg.studies.analysis.measures.units import Unit
from steadyseg.studies.analysis.measures.variance import DrawVariance
from steadyseg.studies.analysis.study import Results, Study, StudyContext
from steadyseg.studies.analysis.subjects import StudyTarget
from steadyseg.studies.harness.report_folder import Table, table_of

ABOUT = (
    "All variances are unbiased, and are averaged over samples and channels. `positions` is the variance over the "
    "points of one map (with dropout on, the map of one draw). `draws` is the variance of one point over the draws "
    "of dropout. `both` is the variance over all points of all draws. `averaged` is the variance over the points of "
    "the mean of the draws: the part that averaging leaves. `in` and `out` are the maps before and behind a smoothing "
    "layer. A blur with zero padding darkens the border of a map. `negative` is the share of values below 0: the ReLU "
    "of Prob deletes it."
)
KEYS = ("positions", "draws", "both", "averaged", "negative")


class Variances(MapTally):
    """One network's figures, summed over pictures."""

    def __init__(self, target: StudyTarget, units: Sequence[Unit], samples: int) -> None:
        super().__init__(target, units)
        self.samples = samples if target.subject.has_dropout else 1
        self.sums: dict[Place, dict[str, float | None]] = {}

    @torch.no_grad()
    def add(self, batch: Tensor, seed: int) -> None:
        """Adds the figures of a batch over all its dropout draws."""
        moments: dict[Place, DrawVariance] = {}
        negative: dict[Place, float] = {}

        def see(place: Place, maps: Tensor) -> None:
            moments.setdefault(place, DrawVariance()).add(maps)
            negative[place] = float((maps < 0).double().mean())  # of the last draw

        with self.watching(see):
            for draw in range(self.samples):
                self.target.subject.logits(batch, "bnn" if self.samples > 1 else "dnn", mix_seed(seed, draw))
        for place, one in moments.items():
            total = self.sums.setdefault(place, dict.fromkeys(KEYS))
            for name, value in {**one.result(), "negative": negative[place]}.items():
                total[name] = None if value is None else (total[name] or 0.0) + len(batch) * value
        self.seen += len(batch)

    def figures(self, place: Place) -> Results:
        total = self.sums[place]
        return {"samples": self.samples} | {
            key: None if value is None else value / self.seen for key, value in total.items()
        }


def measure(context: StudyContext) -> Iterator[Results]:
    tallies = []
    for target in context.targets:
        tallies.append(Variances(target, units_with_maps(context, target), context.job.samples))
        if tallies[-1].samples == 1:
            context.note(f"{target.name}: nothing is drawn, so there is the variance over positions alone")
    # Every unit's sums over the draws are kept for a batch, in double: smaller batches than for a single pass.
    yield from add_batches(context, tallies, context.batches(None if context.is_segmentation else 32))


def tables(results: Results) -> list[Table]:
    columns = (("network", "model"), *COLUMNS, *((key, key) for key in ("channels", *KEYS)))
    whole = table_of("Variance of feature maps", columns, with_sizes(results["rows"]))
    return [whole, *smoothing_table(results["rows"])]


def smoothing_table(rows: list[Results]) -> list[Table]:
    """Ratio of the variance after each smoothing layer to the variance before it."""
    found = []
    for before, after in smoothing_pairs(rows):
        shares = [after[key] / before[key] if before[key] and after[key] is not None else None for key in KEYS[:2]]
        ensemble = before["averaged"] / before["positions"] if before["averaged"] and before["positions"] else None
        found.append([before["model"], before["unit"], *shares, ensemble, before["negative"]])
    columns = (
        "network",
        "smoothing layer",
        "positions after / before",
        "draws after / before",
        "averaged / positions before",
        "negative before",
    )
    return (
        [("What smoothing leaves of the variance, beside what averaging the draws leaves", columns, found)]
        if found
        else []
    )


STUDY = Study("variance", "Variance of feature maps", ABOUT, measure, tables, (256, 8), needs_labels=False)
