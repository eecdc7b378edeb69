"""The study `lesion`: accuracy and NLL without one unit at a time, and smoothing layers at part of their weight."""

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext

import torch

from steadyseg.core.errors import InputError
from steadyseg.studies.analysis.measures.features import Seen, trace
from steadyseg.studies.analysis.measures.lesion import can_be_removed, removed, weighted
from steadyseg.studies.analysis.measures.nll import score
from steadyseg.studies.analysis.measures.units import KINDS, find_units, list_units
from steadyseg.studies.analysis.study import Results, Study, StudyContext
from steadyseg.studies.analysis.subjects import StudyTarget
from steadyseg.studies.harness.report_folder import Table, table_of

ABOUT = (
    "Accuracy and NLL (nats) of the trained network with one unit removed, with dropout off and without further "
    "training. An attention or MLP block returns 0, so that its residual path goes on alone. A convolution or block "
    "that keeps the shape returns its input; a convolution that changes it returns 0; a block that changes it cannot "
    "be removed. A smoothing layer returns its input, padded with zeros to the size it gives. Its weight goes from 1,"
    " as trained, to 0, removed. The change is relative to the whole network on the same pictures; ± is its standard "
    "error over pictures."
)
WEIGHTS = (0.75, 0.5, 0.25, 0.0)


class Lesions:
    """The lesions of one network and their effect on the pictures so far."""

    def __init__(self, target: StudyTarget, named: Sequence[str]) -> None:
        self.target = target
        network = target.subject.network
        target.subject.switch("dnn", None)
        batch = target.batch(range(1))
        asked = find_units(network, named, target.name) if named else []
        units = asked or [unit for kind in KINDS for unit in list_units(network, kind)]
        seen = trace(network, batch, units, target.layout)
        self.left_out = [one.unit.name for one in seen if not can_be_removed(one)]
        kept = [one for one in seen if can_be_removed(one)]
        if asked and len(kept) < len(asked):
            lost = next(unit.name for unit in asked if unit.name not in [one.unit.name for one in kept])
            raise InputError(f"{target.name}: {lost} changes its map's shape or has none, so it cannot be removed")
        self.changes: list[tuple[Seen | None, float]] = [(None, 1.0)]
        for one in kept:
            weights = WEIGHTS if one.unit.kind == "smoothing" else (0.0,)
            self.changes += [(one, weight) for weight in weights]
        self.nll: list[list[float]] = [[] for _ in self.changes]
        self.correct: list[list[float]] = [[] for _ in self.changes]
        self.samples: list[int] = []

    @torch.no_grad()
    def add(self, numbers: range) -> None:
        """Measures one batch under every lesion; figures are kept picture by picture."""
        batch, truth = self.target.batch(numbers), self.target.truth(numbers)
        void = self.target.subject.meta.classes.void
        for place, (seen, weight) in enumerate(self.changes):
            with change(seen, weight):
                logits = self.target.subject.network(batch)
            for one, label in zip(logits, truth, strict=True):
                found = score(one[None].double(), label[None], void)
                self.nll[place].append(float(found.nll))
                self.correct[place].append(float(found.correct))
                if not place:
                    self.samples.append(found.samples)

    def rows(self) -> list[Results]:
        """One row for each lesion, the whole network first."""
        total = sum(self.samples)
        whole_nll, whole_correct = sum(self.nll[0]) / total, sum(self.correct[0]) / total
        rows = []
        for place, (seen, weight) in enumerate(self.changes):
            nll, correct = sum(self.nll[place]) / total, sum(self.correct[place]) / total
            rows.append(
                {
                    "model": self.target.name,
                    "unit": seen.unit.name if seen else "",
                    "kind": seen.unit.kind if seen else "",
                    "weight": weight,
                    "nll": nll,
                    "accuracy": correct,
                    "nll_change": nll - whole_nll,
                    "nll_change_se": self._error(self.nll, place),
                    "accuracy_change": correct - whole_correct,
                    "accuracy_change_se": self._error(self.correct, place),
                }
            )
        return rows

    def _error(self, values: Sequence[Sequence[float]], place: int) -> float | None:
        """Standard error over pictures of the mean change, a ratio where pictures have different numbers of pixels."""
        n, per = len(self.samples), sum(self.samples) / len(self.samples)
        if n < 2:
            return None
        change = torch.tensor(values[place], dtype=torch.float64) - torch.tensor(values[0], dtype=torch.float64)
        ratio = float(change.sum()) / sum(self.samples)
        rest = change - ratio * torch.tensor(self.samples, dtype=torch.float64)
        return float(rest.std()) / (per * n**0.5)


def change(seen: Seen | None, weight: float) -> AbstractContextManager[None]:
    if seen is None:
        return nullcontext()
    return removed(seen.unit) if weight == 0.0 else weighted(seen.unit, weight)


def measure(context: StudyContext) -> Iterator[Results]:
    lesions = [Lesions(target, context.job.units) for target in context.targets]
    for one in lesions:
        if one.left_out:
            context.note(f"{one.target.name}: not removed, as they change their map's shape: {', '.join(one.left_out)}")
    for numbers in context.track(context.batches(), "batches of pictures"):
        for one in lesions:
            one.add(numbers)
        yield {"rows": [row for one in lesions for row in one.rows()], "seen": len(lesions[0].samples)}


def tables(results: Results) -> list[Table]:
    columns = (
        *(("network", "model"), ("without", "unit"), ("kind", "kind"), ("weight", "weight")),
        *(("accuracy", "accuracy"), ("change", "accuracy_change"), ("±", "accuracy_change_se")),
        *(("NLL", "nll"), ("change", "nll_change"), ("±", "nll_change_se")),
    )
    rows = [row | {"unit": row["unit"] or "(whole)"} for row in results["rows"]]
    return [table_of("One unit changed at a time", columns, rows)]


STUDY = Study("lesion", "Lesions", ABOUT, measure, tables, (1000, 10))
