"""The study `similarity`: CKA between the layers of networks, with their smoothing and without, and covariance in
space."""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack

import torch
from torch import Tensor

from steadyseg.core.errors import InputError
from steadyseg.studies.analysis.maps import COLUMNS, MapTally, Place, units_with_maps, with_sizes
from steadyseg.studies.analysis.measures.correlation import SpatialCovariance
from steadyseg.studies.analysis.measures.lesion import removed
from steadyseg.studies.analysis.measures.similarity import MIN_BATCH, MinibatchCka, gram, mean_beside_diagonal
from steadyseg.studies.analysis.measures.units import Unit, list_units
from steadyseg.studies.analysis.study import Results, Study, StudyContext
from steadyseg.studies.analysis.subjects import StudyTarget
from steadyseg.studies.harness.report_folder import Table, table_of

ABOUT = (
    "CKA is linear, of the flattened maps, by the unbiased estimator summed over mini-batches; 1 means equal up to "
    "rotation and scaling. Dropout is off. `without smoothing` is the same network with every smoothing layer removed, "
    "without further training; its maps keep their sizes. The correlation in space is the covariance of two points of "
    "a map over the variance, by the distance between them. It is the mean over channels, and each channel's mean is "
    "subtracted before. Its length is the distance, in points of that map, at which it falls below 1/e."
)
REACH = 8
WITHOUT = "without smoothing"


class Layers(MapTally):
    """The features of one network, with its smoothing layers or without."""

    def __init__(self, target: StudyTarget, units: Sequence[Unit], smoothed: bool = True) -> None:
        super().__init__(target, units)
        self.smoothed = smoothed
        self.name = target.name if smoothed else f"{target.name} {WITHOUT}"
        self.covariances: dict[Place, SpatialCovariance] = {}
        self.grams: dict[str, Tensor] = {}
        """Gram matrix of every unit's output in the last batch."""

    @torch.no_grad()
    def add(self, batch: Tensor, seed: int) -> None:
        """Computes the Gram matrices of a batch and adds its covariances. Dropout is off, so `seed` has no effect."""
        network = self.target.subject.network
        with ExitStack() as stack:
            if not self.smoothed:
                for unit in list_units(network, "smoothing"):
                    stack.enter_context(removed(unit))
            stack.enter_context(self.watching(self._see))
            self.target.subject.logits(batch, "dnn", seed)

    def _see(self, place: Place, maps: Tensor) -> None:
        unit, side = place
        if side != "in":
            self.grams[unit] = gram(maps)
        self.covariances.setdefault(place, SpatialCovariance(REACH)).add(maps)

    def figures(self, place: Place) -> Results:
        one = self.covariances[place]
        return {"variance": one.variance, "length": one.length(), "correlation": one.along_axes()}


def measure(context: StudyContext) -> Iterator[Results]:
    layers = []
    for target in context.targets:
        units = units_with_maps(context, target)
        layers.append(Layers(target, units))
        if list_units(target.subject.network, "smoothing"):
            layers.append(Layers(target, units, smoothed=False))
    pairs = [(one, other) for place, one in enumerate(layers) for other in layers[place:] if related(one, other)]
    sums = [MinibatchCka() for _ in pairs]
    size = 8 if context.is_segmentation else 64
    batches = [numbers for numbers in context.batches(size) if len(numbers) >= MIN_BATCH]
    if not batches:
        raise InputError(
            f"{len(context.targets[0].pictures)} pictures; unbiased CKA needs {MIN_BATCH} or more: raise --images"
        )
    for numbers in context.track(batches, "mini-batches"):
        for one in layers:
            one.add(one.target.batch(numbers), context.options.seed)
        for (one, other), total in zip(pairs, sums, strict=True):
            total.add(list(one.grams.values()), list(other.grams.values()))
        yield {
            "pairs": [
                {
                    "first": one.name,
                    "second": other.name,
                    "rows": list(one.grams),
                    "columns": list(other.grams),
                    "cka": total.result(),
                }
                for (one, other), total in zip(pairs, sums, strict=True)
            ],
            "rows": [row for one in layers if one.smoothed for row in one.rows()],
        }


def related(one: Layers, other: Layers) -> bool:
    """Returns True for a pair to compare: the same network, or two networks with their smoothing."""
    return one is other or one.target is other.target or (one.smoothed and other.smoothed)


def tables(results: Results) -> list[Table]:
    pairs = []
    for pair in results["pairs"]:
        same = [
            value
            for row, line in zip(pair["rows"], pair["cka"], strict=True)
            for column, value in zip(pair["columns"], line, strict=True)
            if row == column and value is not None
        ]
        alike = sum(same) / len(same) if same else None
        own = mean_beside_diagonal(pair["cka"]) if pair["first"] == pair["second"] else None
        pairs.append([pair["first"], pair["second"], alike, own])
    names = ("network", "network", "mean CKA of equally named layers", "mean CKA of different layers")
    distances = {"at 1 point": 1, "at 2": 2, "at 4": 4}
    rows = [
        row | {word: row["correlation"][d] if len(row["correlation"]) > d else None for word, d in distances.items()}
        for row in with_sizes(results["rows"])
    ]
    columns = (("network", "model"), *COLUMNS, ("correlation length, points", "length"))
    words = [(word, word) for word in distances]
    return [("CKA", names, pairs), table_of("Correlation in space", (*columns, *words), rows)]


STUDY = Study("similarity", "Similarity of layers", ABOUT, measure, tables, (512, 16), needs_labels=False)
