"""Study `corruptions`: metrics on corrupted pictures, every type at every severity, generated or published."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any, get_args

import numpy as np
import torch
from torch import Tensor

from steadyseg.core.corruptions.corruptions import (
    BENCHMARK_CORRUPTIONS,
    SEVERITIES,
    SMALLEST_SIDE,
    TUNING_CORRUPTIONS,
    corrupt,
    require_picture,
)
from steadyseg.core.errors import InputError
from steadyseg.core.seeds import mix_seed
from steadyseg.studies.harness.pictures import Pictures, batches_of, chosen_places
from steadyseg.studies.harness.rows import Row, title_of
from steadyseg.studies.harness.target import TargetNetwork
from steadyseg.studies.robustness.flags import RobustnessOptions, Watch, no_progress
from steadyseg.studies.robustness.measures.corruption_means import DataName, Scores, corruption_means
from steadyseg.studies.robustness.measures.published_images import open_corruption
from steadyseg.studies.robustness.tally import Tally

SCORES = ("error", "nll", "ece")


def study_corruptions(
    subjects: Sequence[TargetNetwork], pictures: Pictures, options: RobustnessOptions, watch: Watch = no_progress
) -> dict[str, Any]:
    """`clean` rows, `rows` by type and severity, `means` over types; every picture is corrupted once for all
    networks."""
    source = open_corrupted(pictures, options)
    severities = sorted(options.severities) or list(SEVERITIES)
    cells = [("", 0), *product(source.types, severities)]
    clean: list[Row] = []
    rows: list[Row] = []
    for name, severity in watch(cells, "corruptions"):
        tally = Tally(subjects)
        shown = source.batches(name, severity) if severity else clean_batches(pictures)
        for images, labels, place in shown:
            for subject in subjects:
                methods = subject.methods(options.sample_counts)
                for method, seen in subject.predict(images, methods, mix_seed(options.seed, place)):
                    tally.add(subject, method, seen.probs, labels)
        if severity:
            rows += tally.rows(type=name, severity=severity)
        else:
            clean = tally.rows(type="clean", severity=0)
    published = source.data_name if options.cifar_c else None
    return {
        "pictures": source.count,
        "types": list(source.types),
        "severities": severities,
        "published": options.cifar_c.name if options.cifar_c else None,
        "clean": clean,
        "rows": rows,
        "means": [means_of(row, rows, published) for row in clean],
        "notes": [*source.notes, *notes_on_means(source.types, severities, options, published)],
    }


def means_of(clean: Row, rows: Sequence[Row], published: DataName | None) -> Row:
    """The means over types of the network and method of a clean row."""
    mine = [row for row in rows if title_of(row) == title_of(clean)]
    measured: dict[str, dict[int, Scores]] = {}
    for row in mine:
        measured.setdefault(row["type"], {})[row["severity"]] = Scores(*(row[key] for key in SCORES))
    means = corruption_means(measured, published)
    about = {key: clean[key] for key in ("model", "mode", "samples")}
    if "miou" in clean:
        means["mean_miou"] = mean_miou([row for row in mine if row["type"] in BENCHMARK_CORRUPTIONS])
        for name, found in means["types"].items():
            found["miou"] = mean_miou([row for row in mine if row["type"] == name])
    return about | means


def mean_miou(rows: Sequence[Row]) -> float | None:
    known = [row["miou"] for row in rows if row["miou"] is not None]
    return sum(known) / len(known) if known else None


def notes_on_means(
    types: Sequence[str], severities: Sequence[int], options: RobustnessOptions, published: DataName | None
) -> list[str]:
    """Notes that say which types and severities the means cover."""
    left_out = [name for name in BENCHMARK_CORRUPTIONS if name not in types]
    notes = []
    if left_out:
        notes.append(
            f"means are over {len(BENCHMARK_CORRUPTIONS) - len(left_out)} of the 15 common types: without "
            f"{', '.join(left_out)}"
        )
    if len(severities) < len(SEVERITIES):
        notes.append(f"severities {', '.join(map(str, severities))} of 1 to 5")
    if options.cifar_c is None:
        notes.append("means are plain: AlexNet's denominators are for the published files alone")
    elif published is None:
        notes.append("means are plain: no AlexNet was published for this data")
    elif left_out or len(severities) < len(SEVERITIES):
        notes.append("no mCE, mCNLL, mCECE: they are over all 15 types at all five severities")
    return notes


Shown = tuple[Sequence[np.ndarray], Tensor, int]
"""Pictures, their labels (B, ...), and the place in the set of the first."""


def clean_batches(pictures: Pictures) -> Iterator[Shown]:
    for numbers in pictures.batches():
        yield pictures.images[numbers.start : numbers.stop], pictures.truth(numbers), pictures.places[numbers.start]


@dataclass(frozen=True)
class MadeCorruptions:
    """Corruptions of the study's own pictures, drawn from the seed."""

    pictures: Pictures
    types: tuple[str, ...]
    seed: int
    data_name: DataName | None = None

    @property
    def count(self) -> int:
        return len(self.pictures)

    @property
    def notes(self) -> list[str]:
        notes = ["corruptions are made here with ImageNet-C's severities"]
        if self.pictures.images[0].shape[:2] == (32, 32):
            notes.append(
                "CIFAR-C's severities are milder: figures are not comparable with those of its published files"
            )
        return notes

    def batches(self, name: str, severity: int) -> Iterator[Shown]:
        for numbers in self.pictures.batches():
            worse = [
                corrupt(self.pictures.images[n], name, severity, self.seed, self.pictures.places[n]) for n in numbers
            ]
            yield worse, self.pictures.truth(numbers), self.pictures.places[numbers.start]


@dataclass(frozen=True)
class PublishedCorruptions:
    """The files of CIFAR-C; the same pictures of every file."""

    folder: Path
    types: tuple[str, ...]
    places: tuple[int, ...]
    whole: int
    data_name: DataName | None
    batch: int

    @property
    def count(self) -> int:
        return len(self.places)

    @property
    def notes(self) -> list[str]:
        notes = [
            f"corruptions are read from {self.folder.name}: {self.count} of {self.whole} pictures of each severity"
        ]
        if self.count < 10_000 and self.data_name:
            notes.append("AlexNet's denominators are of all 10,000 pictures, so ratios of fewer are estimates")
        return notes

    def batches(self, name: str, severity: int) -> Iterator[Shown]:
        pictures, labels = open_corruption(self.folder, name)
        for numbers in batches_of(self.count, self.batch):
            places = [self.places[number] for number in numbers]
            yield list(pictures[severity - 1][places]), torch.from_numpy(labels[places]), places[0]


def open_corrupted(pictures: Pictures, options: RobustnessOptions) -> MadeCorruptions | PublishedCorruptions:
    """Opens the corrupted pictures; raises InputError for whatever is wrong before the first is measured."""
    if options.cifar_c is None:
        types = options.types or (*BENCHMARK_CORRUPTIONS, *TUNING_CORRUPTIONS)
        for image in pictures.images:
            require_picture(image, SMALLEST_SIDE)
        corrupt(pictures.images[0], types[0], 1)  # the package may not be there
        return MadeCorruptions(pictures, types, options.seed)
    folder = options.cifar_c
    require_published(folder, pictures)
    found = tuple(name for name in (*BENCHMARK_CORRUPTIONS, *TUNING_CORRUPTIONS) if (folder / f"{name}.npy").is_file())
    types = options.types or found
    if not types:
        raise InputError(f"{folder}: has none of the published files; expected gaussian_noise.npy, ..., and labels.npy")
    counts = {name: len(open_corruption(folder, name)[1]) for name in types}
    whole = min(counts.values())
    if max(counts.values()) != whole:
        few, many = min(counts, key=lambda n: counts[n]), max(counts, key=lambda n: counts[n])
        raise InputError(
            f"{folder}: {few} has {counts[few]} pictures and {many} {counts[many]}; expected as many in each"
        )
    data_name = next((name for name in get_args(DataName) if name == pictures.data), None)
    places = chosen_places(whole, len(pictures), options.seed)
    return PublishedCorruptions(folder, types, tuple(places), whole, data_name, pictures.batch)


def require_published(folder: Path, pictures: Pictures) -> None:
    """Raises InputError unless the networks see 32x32 pictures with a class each, as the published files have."""
    shape = pictures.images[0].shape
    if pictures.labels[0].ndim or shape[:2] != (32, 32):
        raise InputError(
            f"{folder}: published pictures are 32x32 pixels with a class each; these networks see "
            f"{shape[1]}x{shape[0]}: omit the folder, and what they see is corrupted here"
        )
