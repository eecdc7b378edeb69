"""`analyze variance`: variance of feature maps by depth, over positions, over dropout draws and over both."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from steadyseg.core.seeds import mix_seed
from steadyseg.studies.analysis.fourier import sides
from steadyseg.studies.analysis.measures.features import watch_maps
from steadyseg.studies.analysis.measures.units import Unit
from steadyseg.studies.analysis.measures.variance import DrawVariance
from steadyseg.studies.analysis.plots import draw_by_depth, smoothing_pairs
from steadyseg.studies.analysis.study import Results, Study, StudyContext, depths
from steadyseg.studies.analysis.subjects import StudyTarget
from steadyseg.studies.harness.panels import legend_below, new_figure
from steadyseg.studies.harness.report_folder import Table

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ABOUT = (
    "All variances are unbiased, and are averaged over samples and channels. `positions` is the variance over the "
    "points of one map (with dropout on, the map of one draw). `draws` is the variance of one point over the draws "
    "of dropout. `both` is the variance over all points of all draws. `averaged` is the variance over the points of "
    "the mean of the draws: the part that averaging leaves. `in` and `out` are the maps before and behind a smoothing "
    "layer. A blur with zero padding darkens the border of a map."
)
KEYS = ("positions", "draws", "both", "averaged")


class Variances:
    """One network's figures, summed over pictures."""

    def __init__(self, target: StudyTarget, units: list[Unit], samples: int) -> None:
        self.target, self.units = target, units
        self.samples = samples if target.subject.has_dropout else 1
        self.sums: dict[tuple[str, str], dict[str, float | None]] = {}
        self.sizes: dict[tuple[str, str], tuple[int, ...]] = {}
        self.seen = 0

    @torch.no_grad()
    def add(self, batch: Tensor, seed: int) -> None:
        """Adds the figures of a batch over all its dropout draws."""
        moments: dict[tuple[str, str], DrawVariance] = {}

        def see(unit: Unit, before: Tensor, after: Tensor) -> None:
            for side, maps in sides(unit, before, after).items():
                moments.setdefault((unit.name, side), DrawVariance()).add(maps)
                self.sizes[unit.name, side] = tuple(maps.shape[1:])

        with watch_maps(self.units, see, self.target.layout):
            for draw in range(self.samples):
                self.target.subject.logits(batch, "bnn" if self.samples > 1 else "dnn", mix_seed(seed, draw))
        for key, one in moments.items():
            total = self.sums.setdefault(key, dict.fromkeys(KEYS))
            for name, value in one.result().items():
                total[name] = None if value is None else (total[name] or 0.0) + len(batch) * value
        self.seen += len(batch)

    def rows(self) -> list[Results]:
        """One row for each map, in the order of computation."""
        places = depths(side for _, side in self.sums)
        return [
            {
                "model": self.target.name,
                "unit": name,
                "map": side,
                "depth": depth,
                **dict(zip(("channels", "height", "width"), self.sizes[name, side], strict=True)),
                "samples": self.samples,
                **{key: None if value is None else value / self.seen for key, value in total.items()},
            }
            for depth, ((name, side), total) in zip(places, self.sums.items(), strict=True)
        ]


def measure(context: StudyContext) -> Iterator[Results]:
    job: Any = context.job
    tallies = []
    for target in context.targets:
        units, left_out = target.units_with_maps(job.units, least=2)
        context.note(left_out)
        tallies.append(Variances(target, units, job.samples))
        if tallies[-1].samples == 1:
            context.note(f"{target.name}: nothing is drawn, so there is the variance over positions alone")
    # Every unit's sums over the draws are kept for a batch, in double: smaller batches than for a single pass.
    yield from context.tally(tallies, context.batches(None if context.is_segmentation else 32))


def tables(results: Results) -> list[Table]:
    columns = ("network", "unit", "map", "size", "channels", "positions", "draws", "both", "averaged")
    rows = [
        [
            row["model"],
            row["unit"],
            row["map"],
            f"{row['width']}x{row['height']}",
            row["channels"],
            *(row[key] for key in KEYS),
        ]
        for row in results["rows"]
    ]
    return [("Variance of feature maps", columns, rows), *smoothing_table(results["rows"])]


def smoothing_table(rows: list[Results]) -> list[Table]:
    """Ratio of the variance after each smoothing layer to the variance before it."""
    found = []
    for before, after in smoothing_pairs(rows):
        shares = [after[key] / before[key] if before[key] and after[key] is not None else None for key in KEYS[:2]]
        ensemble = before["averaged"] / before["positions"] if before["averaged"] and before["positions"] else None
        found.append([before["model"], before["unit"], *shares, ensemble])
    columns = (
        "network",
        "smoothing layer",
        "positions after / before",
        "draws after / before",
        "averaged / positions before",
    )
    return (
        [("What smoothing leaves of the variance, beside what averaging the draws leaves", columns, found)]
        if found
        else []
    )


def figures(results: Results) -> dict[str, "Figure"]:
    rows = results["rows"]
    drawn = any(row["draws"] is not None for row in rows)
    keys = KEYS if drawn else KEYS[:1]
    figure, axes = new_figure(len(keys), 3.8)
    for axis, key in zip(axes, keys, strict=True):
        for number, model in enumerate(dict.fromkeys(row["model"] for row in rows)):
            mine = [row for row in rows if row["model"] == model and row[key]]  # none and 0 are not drawn
            draw_by_depth(axis, mine, key, number, model)
        axis.plot([], [], color="grey", lw=5, alpha=0.5, label="a smoothing layer")
        axis.set_yscale("log")
        axis.set_title(TITLES[key], fontsize=9)
    axes[0].set_ylabel("variance of feature maps (log scale)")
    legend_below(figure, axes)
    draws = max(row["samples"] for row in rows)
    figure.suptitle(f"Variance by depth, {results['seen']} pictures, {draws} draws at most", fontsize=10)
    return {"variance": figure}


TITLES = {
    "positions": "over positions",
    "draws": "over dropout draws",
    "both": "over both",
    "averaged": "over positions, of the mean of the draws",
}

STUDY = Study("variance", "Variance of feature maps", ABOUT, measure, tables, figures, (256, 8), needs_labels=False)
