"""`analyze fourier`: relative log amplitude of every block's feature maps by frequency and depth."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from steadyseg.studies.analysis.measures.features import watch_maps
from steadyseg.studies.analysis.measures.fourier import frequencies, log_amplitude
from steadyseg.studies.analysis.measures.units import Unit
from steadyseg.studies.analysis.plots import depth_colours, draw_by_depth
from steadyseg.studies.analysis.study import Results, Study, StudyContext, depths
from steadyseg.studies.analysis.subjects import StudyTarget
from steadyseg.studies.harness.panels import legend_below, new_figure
from steadyseg.studies.harness.report_folder import Table

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ABOUT = (
    "Mean over samples and channels of ln(|F| + 1e-6) along the diagonal of the spectrum, relative to frequency 0 of "
    "the same map (natural logarithm: -2.3 is a tenth). Entry i of a map of side h stands at 2 i / h of pi, where pi "
    "is a period of two points. `high` is the last entry, just below pi. The logits are left out. `bnn` is the mean "
    "over single dropout draws, `dnn` dropout off. `in` and `out` are the input and output maps of a smoothing layer."
)


class Spectra:
    """The summed spectra of one network's maps in one mode."""

    def __init__(self, target: StudyTarget, mode: str, units: list[Unit]) -> None:
        self.target, self.mode, self.units = target, mode, units
        self.sums: dict[tuple[str, str], Tensor] = {}
        self.sizes: dict[tuple[str, str], tuple[int, ...]] = {}
        self.seen = 0

    @torch.no_grad()
    def add(self, batch: Tensor, seed: int) -> None:
        with watch_maps(self.units, self._see, self.target.layout):
            self.target.subject.logits(batch, self.mode, seed)
        self.seen += len(batch)

    def _see(self, unit: Unit, before: Tensor, after: Tensor) -> None:
        for side, maps in sides(unit, before, after).items():
            amplitude = len(maps) * log_amplitude(maps.float()).cpu()
            key = unit.name, side
            self.sums[key] = amplitude if key not in self.sums else self.sums[key] + amplitude
            self.sizes[key] = tuple(maps.shape[1:])

    def rows(self) -> list[Results]:
        """One row for each map, in the order of computation."""
        places = depths(side for _, side in self.sums)
        return [
            {
                "model": self.target.name,
                "mode": self.mode,
                "unit": name,
                "map": side,
                "depth": depth,
                **dict(zip(("channels", "height", "width"), self.sizes[name, side], strict=True)),
                "dc": float(total[0]) / self.seen,
                "frequency": frequencies(*self.sizes[name, side][1:]).tolist(),
                "amplitude": ((total - total[0]) / self.seen).tolist(),
                "high": float(total[-1] - total[0]) / self.seen,
            }
            for depth, ((name, side), total) in zip(places, self.sums.items(), strict=True)
        ]


def sides(unit: Unit, before: Tensor, after: Tensor) -> dict[str, Tensor]:
    """The maps of a unit by name: "in" and "out" for a smoothing layer, "" for any other unit."""
    return {"in": before, "out": after} if unit.kind == "smoothing" else {"": after}


def measure(context: StudyContext) -> Iterator[Results]:
    job: Any = context.job
    tallies = []
    for target in context.targets:
        units, left_out = target.units_with_maps(job.units, least=2)
        context.note(left_out)
        for mode in ("dnn", "bnn") if target.subject.has_dropout else ("dnn",):
            tallies.append(Spectra(target, mode, units))
    yield from context.tally(tallies, context.batches())


def tables(results: Results) -> list[Table]:
    columns = ("network", "mode", "unit", "map", "size", "channels", "at 0.25 pi", "at 0.5 pi", "at 0.75 pi", "high")
    rows = [
        [
            row["model"],
            row["mode"],
            row["unit"],
            row["map"],
            f"{row['width']}x{row['height']}",
            row["channels"],
            *(at(row, place) for place in (0.25, 0.5, 0.75)),
            row["high"],
        ]
        for row in results["rows"]
    ]
    return [("Relative log amplitude by block", columns, rows)]


def at(row: Results, place: float) -> float | None:
    """The amplitude at the nearest frequency; None where none is near."""
    near = min(range(len(row["frequency"])), key=lambda i: abs(row["frequency"][i] - place))
    return row["amplitude"][near] if abs(row["frequency"][near] - place) <= 0.13 else None


def figures(results: Results) -> dict[str, "Figure"]:
    rows = results["rows"]
    groups = list(dict.fromkeys((row["model"], row["mode"]) for row in rows))
    plain = [group for group in groups if group[1] == "dnn"]
    figure, axes = new_figure(len(plain) + 1)
    low = min(min(row["amplitude"]) for row in rows)
    for axis, group in zip(axes, plain, strict=False):
        mine = [row for row in rows if (row["model"], row["mode"]) == group and row["map"] != "in"]
        for row, colour in zip(mine, depth_colours(len(mine)), strict=True):
            smooth = row["map"] == "out"
            axis.plot(row["frequency"], row["amplitude"], "--" if smooth else "-", color=colour, lw=1.2)
        axis.set_title(group[0], fontsize=9)
        axis.set_xlabel("frequency / pi")
        axis.set_ylim(low - 0.3, 0.3)
        axis.set_xlim(0, 1)
    axes[0].set_ylabel("relative log amplitude (natural log)")
    key = axes[0]
    for label, place in (("first block", 0), ("last block", 1)):
        key.plot([], [], color=depth_colours(2)[place], label=label)
    key.plot([], [], "k--", label="leaves a smoothing layer")
    draw_high(axes[-1], rows, groups)
    legend_below(figure, axes)
    figure.suptitle(f"Feature maps by frequency, {results['seen']} pictures", fontsize=10)
    return {"fourier": figure}


def draw_high(axis: Any, rows: list[Results], groups: list[tuple[str, str]]) -> None:
    for number, group in enumerate(groups):
        mine = [row for row in rows if (row["model"], row["mode"]) == group]
        draw_by_depth(axis, mine, "high", number, f"{group[0]}, {group[1]}")
    axis.plot([], [], color="grey", lw=5, alpha=0.5, label="a smoothing layer")
    axis.set_title("just below pi, by depth", fontsize=9)
    axis.set_ylabel("relative log amplitude")


STUDY = Study("fourier", "Feature maps by frequency", ABOUT, measure, tables, figures, (256, 8), needs_labels=False)
