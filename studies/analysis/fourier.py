"""The study `fourier`: relative log amplitude of every block's feature maps by frequency and depth."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from steadyseg.studies.analysis.maps import (
    COLUMNS,
    MapTally,
    Place,
    add_batches,
    draw_by_depth,
    units_with_maps,
    with_sizes,
)
from steadyseg.studies.analysis.measures.fourier import frequencies, log_amplitude
from steadyseg.studies.analysis.measures.units import Unit
from steadyseg.studies.analysis.study import Results, Study, StudyContext
from steadyseg.studies.analysis.subjects import StudyTarget
from steadyseg.studies.harness.panels import legend_below, new_figure
from steadyseg.studies.harness.report_folder import Table, table_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ABOUT = (
    "Mean over samples and channels of ln(|F| + 1e-6) along the diagonal of the spectrum, relative to frequency 0 of "
    "the same map (natural logarithm: -2.3 is a tenth). Entry i of a map of side h stands at 2 i / h of pi, where pi "
    "is a period of two points. `high` is the last entry, just below pi. The logits are left out. `bnn` is the mean "
    "over single dropout draws, `dnn` dropout off. `in` and `out` are the input and output maps of a smoothing layer."
)


class Spectra(MapTally):
    """The summed spectra of one network's maps in one mode."""

    def __init__(self, target: StudyTarget, mode: str, units: Sequence[Unit]) -> None:
        super().__init__(target, units, mode=mode)
        self.mode = mode
        self.sums: dict[Place, Tensor] = {}

    @torch.no_grad()
    def add(self, batch: Tensor, seed: int) -> None:
        with self.watching(self._see):
            self.target.subject.logits(batch, self.mode, seed)
        self.seen += len(batch)

    def _see(self, place: Place, maps: Tensor) -> None:
        amplitude = len(maps) * log_amplitude(maps.float()).cpu()
        self.sums[place] = amplitude if place not in self.sums else self.sums[place] + amplitude

    def figures(self, place: Place) -> Results:
        total = self.sums[place]
        return {
            "dc": float(total[0]) / self.seen,
            "frequency": frequencies(*self.sizes[place][1:]).tolist(),
            "amplitude": ((total - total[0]) / self.seen).tolist(),
            "high": float(total[-1] - total[0]) / self.seen,
        }


def measure(context: StudyContext) -> Iterator[Results]:
    tallies = []
    for target in context.targets:
        units = units_with_maps(context, target)
        for mode in ("dnn", "bnn") if target.subject.has_dropout else ("dnn",):
            tallies.append(Spectra(target, mode, units))
    yield from add_batches(context, tallies, context.batches())


def tables(results: Results) -> list[Table]:
    columns = (("network", "model"), ("mode", "mode"), *COLUMNS, ("channels", "channels"))
    amplitudes = {f"at {place:g} pi": place for place in (0.25, 0.5, 0.75)}
    rows = [row | {word: at(row, place) for word, place in amplitudes.items()} for row in with_sizes(results["rows"])]
    words = [(word, word) for word in (*amplitudes, "high")]
    return [table_of("Relative log amplitude by block", (*columns, *words), rows)]


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


def depth_colours(count: int) -> list[tuple[float, ...]]:
    """`count` colours from dark (the first block) to light (the last)."""
    from matplotlib import colormaps

    return [tuple(colormaps["viridis"](0.9 * place / max(1, count - 1))) for place in range(count)]


def draw_high(axis: Any, rows: list[Results], groups: list[tuple[str, str]]) -> None:
    for number, group in enumerate(groups):
        mine = [row for row in rows if (row["model"], row["mode"]) == group]
        draw_by_depth(axis, mine, "high", number, f"{group[0]}, {group[1]}")
    axis.plot([], [], color="grey", lw=5, alpha=0.5, label="a smoothing layer")
    axis.set_title("just below pi, by depth", fontsize=9)
    axis.set_ylabel("relative log amplitude")


STUDY = Study("fourier", "Feature maps by frequency", ABOUT, measure, tables, figures, (256, 8), needs_labels=False)
