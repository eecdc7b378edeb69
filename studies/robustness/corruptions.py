"""Study `corruptions`: metrics on corrupted pictures, every type at every severity."""

from collections.abc import Iterator, Sequence
from itertools import product
from typing import Any

import numpy as np
from torch import Tensor

from steadyseg.core.corruptions.corruptions import (
    BENCHMARK_CORRUPTIONS,
    SEVERITIES,
    SMALLEST_SIDE,
    TUNING_CORRUPTIONS,
    corrupt,
    require_picture,
)
from steadyseg.core.evaluation.figures import mean_of_known
from steadyseg.core.seeds import mix_seed
from steadyseg.studies.harness.pictures import Pictures
from steadyseg.studies.harness.target import TargetNetwork
from steadyseg.studies.robustness.flags import RobustnessOptions, Watch, no_progress
from steadyseg.studies.robustness.tally import Row, Tally, title_of

SCORES = ("error", "nll", "ece")


def study_corruptions(
    subjects: Sequence[TargetNetwork], pictures: Pictures, options: RobustnessOptions, watch: Watch = no_progress
) -> dict[str, Any]:
    """`clean` rows, `rows` by type and severity, `means` over types; every picture is corrupted once for all
    networks."""
    types = options.types or (*BENCHMARK_CORRUPTIONS, *TUNING_CORRUPTIONS)
    for image in pictures.images:
        require_picture(image, SMALLEST_SIDE)
    corrupt(pictures.images[0], types[0], 1)  # the package may not be there
    severities = sorted(options.severities) or list(SEVERITIES)
    cells = [("", 0), *product(types, severities)]
    clean: list[Row] = []
    rows: list[Row] = []
    for name, severity in watch(cells, "corruptions"):
        tally = Tally(subjects)
        for images, labels, place in shown_batches(pictures, name, severity, options.seed):
            for subject in subjects:
                methods = subject.methods(options.sample_counts)
                for method, seen in subject.predict(images, methods, mix_seed(options.seed, place)):
                    tally.add(subject, method, seen.probs, labels)
        if severity:
            rows += tally.rows(type=name, severity=severity)
        else:
            clean = tally.rows(type="clean", severity=0)
    return {
        "pictures": len(pictures),
        "types": list(types),
        "severities": severities,
        "clean": clean,
        "rows": rows,
        "means": [means_of(row, rows) for row in clean],
        "notes": notes(pictures, types, severities),
    }


def means_of(clean: Row, rows: Sequence[Row]) -> Row:
    """The means over severities, and over the 15 common types, of the network and method of a clean row."""
    mine = [row for row in rows if title_of(row) == title_of(clean)]
    keys = (*SCORES, "miou") if "miou" in clean else SCORES
    types = dict.fromkeys(row["type"] for row in mine)
    by_type = {
        name: {key: mean_of_known([r[key] for r in mine if r["type"] == name]) for key in keys} for name in types
    }
    common = [found for name, found in by_type.items() if name in BENCHMARK_CORRUPTIONS]
    about = {key: clean[key] for key in ("model", "mode", "samples")}
    return about | {"types": by_type} | {f"mean_{key}": mean_of_known([found[key] for found in common]) for key in keys}


def notes(pictures: Pictures, types: Sequence[str], severities: Sequence[int]) -> list[str]:
    """Notes on the pictures, and on the types and severities of the means."""
    told = ["corruptions are made here with ImageNet-C's severities"]
    if pictures.images[0].shape[:2] == (32, 32):
        told.append("CIFAR-C's severities are milder: figures are not comparable with those of its published files")
    left_out = [name for name in BENCHMARK_CORRUPTIONS if name not in types]
    if left_out:
        told.append(
            f"means are over {len(BENCHMARK_CORRUPTIONS) - len(left_out)} of the 15 common types: without "
            f"{', '.join(left_out)}"
        )
    if len(severities) < len(SEVERITIES):
        told.append(f"severities {', '.join(map(str, severities))} of 1 to 5")
    return told


def shown_batches(
    pictures: Pictures, name: str, severity: int, seed: int
) -> Iterator[tuple[Sequence[np.ndarray], Tensor, int]]:
    """Yields corrupted pictures (severity 0: clean), their labels (B, ...), and the place in the set of the first."""
    for numbers in pictures.batches():
        shown: Sequence[np.ndarray] = pictures.images[numbers.start : numbers.stop]
        if severity:
            shown = [corrupt(pictures.images[n], name, severity, seed, pictures.places[n]) for n in numbers]
        yield shown, pictures.truth(numbers), pictures.places[numbers.start]
