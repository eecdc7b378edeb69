"""The study `landscape`: loss and accuracy on a plane through the weights."""

from collections.abc import Iterator, Sequence
from typing import Any

import torch
from torch import Tensor

from steadyseg.core.seeds import mix_seed
from steadyseg.studies.analysis.measures.landscape import (
    grid,
    moved,
    moving_weights,
    random_direction,
    squared_norm,
    sum_of_norms,
)
from steadyseg.studies.analysis.measures.nll import score
from steadyseg.studies.analysis.study import Results, Study, StudyContext
from steadyseg.studies.analysis.subjects import StudyTarget
from steadyseg.studies.analysis.training_pictures import TrainingPictures
from steadyseg.studies.harness.report_folder import Table, table_of

ABOUT = (
    "Mean NLL (without L2) and accuracy at the trained weights + x * first direction + y * second direction. A random "
    "direction is Gaussian and then rescaled. `--config rule` chooses how: filter gives it the norm of each filter, as "
    "in the paper, and axis0 the norm over the output channels, as in the published code. Biases, BatchNorm's scales "
    "and shifts and position tables stay. BatchNorm uses the running statistics of the trained weights everywhere. "
    "Dropout is off unless a note says otherwise. L2 stands apart: |w|^2, and the sum of unsquared norms that the "
    "published code has."
)
FIGURES = ("loss", "accuracy", "squared_norm", "sum_of_norms")
"""Figures of each point of the plane."""


class Plane:
    """The loss of one network over its plane."""

    def __init__(self, target: StudyTarget, job: Any, seed: int) -> None:
        self.target, self.job, self.seed = target, job, seed
        self.network = target.subject.network
        self.weights = moving_weights(self.network)
        self.ways = [random_direction(self.weights, job.rule, one) for one in (seed, seed + 1)]
        self.places = grid(job.points, job.reach)
        self.pictures = TrainingPictures(target, seed, job.augmented)
        self.batches: list[tuple[Tensor, Tensor]] = []
        self.figures = {key: [[0.0] * job.points for _ in range(job.points)] for key in FIGURES}

    @torch.no_grad()
    def fill(self, row: int, batches: Sequence[range]) -> None:
        """Measures one row of the plane: one y and all x."""
        self.batches = self.batches or [self.pictures.batch(numbers) for numbers in batches]
        void = self.target.subject.meta.classes.void
        for column, x in enumerate(self.places):
            with moved(self.network, self.weights, [(x, self.ways[0]), (self.places[row], self.ways[1])]):
                total, correct, samples = 0.0, 0, 0
                for number, (batch, labels) in enumerate(self.batches):
                    self.target.subject.switch("bnn" if self.job.dropout else "dnn", mix_seed(self.seed, number))
                    found = score(self.network(batch).double(), labels, void)
                    total, correct, samples = total + float(found.nll), correct + found.correct, samples + found.samples
                values = total / samples, correct / samples, squared_norm(self.network), sum_of_norms(self.network)
                for key, value in zip(FIGURES, values, strict=True):
                    self.figures[key][row][column] = value

    def record(self, rows: int) -> Results:
        middle = self.job.points // 2
        found: Results = {
            "model": self.target.name,
            "x": self.places,
            "y": self.places,
            **self.figures,
            "rows_done": rows,
            "centre_loss": self.figures["loss"][middle][middle],
            "centre_accuracy": self.figures["accuracy"][middle][middle],
        }
        return found | flatness(found)


def flatness(plane: Results) -> Results:
    """Rise of the loss near half of the reach (the grid point next below) and at its end, or None before all rows are
    done. Each is the mean over the four points on the axes."""
    size = len(plane["x"])
    middle = size // 2
    if plane["rows_done"] < size:
        return {"half_rise": None, "end_rise": None}
    found = {}
    for name, step in (("half_rise", max(1, middle // 2)), ("end_rise", middle)):
        cross = [plane["loss"][middle][middle + s] for s in (-step, step)]
        cross += [plane["loss"][middle + s][middle] for s in (-step, step)]
        found[name] = sum(cross) / 4 - plane["centre_loss"]
    return found


def measure(context: StudyContext) -> Iterator[Results]:
    job = context.job
    for target in context.targets:
        target.subject.network.to(memory_format=torch.contiguous_format)
        if job.dropout and target.subject.has_dropout:
            context.note(f"{target.name}: dropout on, at every point the same draw of its masks")
    planes = [Plane(target, job, context.options.seed) for target in context.targets]
    # From the middle outwards, so that what there was time for is a whole strip around the trained weights.
    order = sorted(range(job.points), key=lambda row: abs(row - job.points // 2))
    for done, row in enumerate(context.track(order, "rows of the plane"), start=1):
        for plane in planes:
            plane.fill(row, context.batches())
        yield {"planes": [plane.record(done) for plane in planes], "rule": job.rule}


def tables(results: Results) -> list[Table]:
    columns = (
        *(("network", "model"), ("loss at the centre", "centre_loss"), ("accuracy", "centre_accuracy")),
        *(("rise near half the reach", "half_rise"), ("rise at the end", "end_rise")),
        *(("squared norm", "squared_norm"), ("sum of norms", "sum_of_norms")),
    )
    rows = []
    for plane in results["planes"]:
        middle = len(plane["x"]) // 2
        rows.append(plane | {key: plane[key][middle][middle] for key in ("squared_norm", "sum_of_norms")})
    return [table_of("Loss around the trained weights (rise: mean over the four points on the axes)", columns, rows)]


STUDY = Study("landscape", "Loss landscape", ABOUT, measure, tables, (256, 4), split="train")
