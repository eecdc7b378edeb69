"""The study `fourier`: relative log amplitude of every block's feature maps by frequency and depth."""

from collections.abc import Iterator, Sequence

import torch
from torch import Tensor

from steadyseg.studies.analysis.maps import (
    COLUMNS,
    MapTally,
    Place,
    add_batches,
    units_with_maps,
    with_sizes,
)
from steadyseg.studies.analysis.measures.fourier import frequencies, log_amplitude
from steadyseg.studies.analysis.measures.units import Unit
from steadyseg.studies.analysis.study import Results, Study, StudyContext
from steadyseg.studies.analysis.subjects import StudyTarget
from steadyseg.studies.harness.report_folder import Table, table_of

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


STUDY = Study("fourier", "Feature maps by frequency", ABOUT, measure, tables, (256, 8), needs_labels=False)
