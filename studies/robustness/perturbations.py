"""Study `perturbations`: consistency of predictions while a picture changes a little from frame to frame."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import Any

import numpy as np
import torch
from torch import Tensor

from steadyseg.core.evaluation.figures import mean_of_known
from steadyseg.core.method import Method
from steadyseg.core.seeds import mix_seed
from steadyseg.studies.harness.pictures import Pictures, batches_of
from steadyseg.studies.harness.target import TargetNetwork
from steadyseg.studies.robustness.flags import RobustnessOptions, Watch, no_progress
from steadyseg.studies.robustness.measures.perturbations import GENERATED, PUBLISHED, compared_with, perturb
from steadyseg.studies.robustness.measures.temporal_consistency import (
    MEASURES,
    TemporalConsistency,
    relative_confidence,
)
from steadyseg.studies.robustness.tally import Row, title_of, titles_of

MOVING = ("translate", "rotate", "tilt", "scale")
"""Perturbations that put the picture's points elsewhere, so that labels of pixels do not hold for their frames."""
GROUP = 16
"""Sequences of small pictures whose metrics are taken together: one by one they cost more than the network."""


@dataclass
class Sums:
    """Sums of one network and method along the sequences of one perturbation."""

    consistency: TemporalConsistency
    confidence: list[float] = field(default_factory=list)
    """Mean relative confidence of each sequence."""


def study_perturbations(
    subjects: Sequence[TargetNetwork], pictures: Pictures, options: RobustnessOptions, watch: Watch = no_progress
) -> dict[str, Any]:
    """`rows` by perturbation and `means` over all of them."""
    rows: list[Row] = []
    sums: dict[tuple[str, str, Method], Sums] = {}
    dense = subjects[0].is_segmentation
    jobs = list(product(GENERATED, batches_of(len(pictures), 1 if dense else GROUP)))
    for name, numbers in watch(jobs, "perturbations"):
        labels = pictures.truth(numbers)
        if dense and bool((labels == subjects[0].meta.classes.void_id).all()):
            continue  # a still without a label says nothing
        sequences = np.stack([perturb(pictures.images[n], name, options.seed, pictures.places[n]) for n in numbers])
        for subject in subjects:
            void = subject.meta.classes.void
            methods, seed = subject.methods(options.sample_counts), mix_seed(options.seed, numbers.start)
            for method, probs in along(subject, sequences, methods, pictures.batch, seed):
                key = (name, subject.name, method)
                found = sums.setdefault(key, Sums(TemporalConsistency(len(subject), compared_with(name), void)))
                truth = subject.labels_at(labels, (probs.shape[-2], probs.shape[-1]))
                found.consistency.update(probs, truth)
                if not (dense and name in MOVING):
                    found.confidence += [mean_confidence(*one, void) for one in zip(probs, truth, strict=True)]
    for (name, model, method), found in sums.items():
        confidence = sum(found.confidence) / len(found.confidence) if found.confidence else None
        about = {"model": model, "mode": method.mode, "samples": method.samples, "perturbation": name}
        rows.append({**about, **found.consistency.result(), "relative_confidence": confidence})
    return {
        "sequences": len(pictures),
        "perturbations": list(GENERATED),
        "rows": rows,
        "means": means_of(rows),
        "notes": definitions(subjects),
    }


def definitions(subjects: Sequence[TargetNetwork]) -> list[str]:
    """Says how sequences are made and figures defined."""
    lacking = ", ".join(name for name in PUBLISHED if name not in GENERATED)
    instead = ", ".join(name for name in GENERATED if name not in PUBLISHED)
    notes = [
        f"sequences are generated here with the steps of CIFAR-10-P; {instead} replaces {lacking}, which is not "
        "available",
        "consistency: share of pairs of neighbouring frames with equal arg-max; under noise, pairs of the first and "
        "each later frame",
        "cec: cross-entropy of such a pair as in the paper (Eq. 35, sum over classes); cec_reference: as in its code "
        "(mean over classes, roles swapped), which the published values fit",
    ]
    if subjects[0].is_segmentation:
        notes.append(
            f"pixel by pixel, without following the motion: in {', '.join(MOVING)} it also counts what truly "
            "changed, and relative confidence is left out there"
        )
    return notes


@torch.inference_mode()
def along(
    subject: TargetNetwork, sequences: np.ndarray, methods: Sequence[Method], batch: int, seed: int
) -> Iterator[tuple[Method, Tensor]]:
    """(S, F, H, W, 3) uint8 -> each method's probabilities (S, F, K, ...) at the network's size; each frame has its
    masks."""
    pictures = sequences.reshape(-1, *sequences.shape[2:])
    parts: dict[Method, list[Tensor]] = {method: [] for method in methods}
    for places in batches_of(len(pictures), batch):
        images = list(pictures[places.start : places.stop])
        for method, seen in subject.predict(images, methods, mix_seed(seed, places.start)):
            parts[method].append(seen.probs)
    for method, probs in parts.items():
        yield method, torch.cat(probs).unflatten(0, sequences.shape[:2])


def mean_confidence(probs: Tensor, label: Tensor, void: int | None) -> float:
    """Mean of p(true class) / max p over the frames and non-void pixels of a sequence: probs (F, K, ...), label
    (...)."""
    kept = torch.ones_like(label, dtype=torch.bool) if void is None else label != void
    truth = label.masked_fill(~kept, 0).expand(len(probs), *label.shape).to(probs.device)
    return float(relative_confidence(probs, truth)[kept.expand_as(truth)].mean())


def means_of(rows: Sequence[Row]) -> list[Row]:
    """Means over all perturbations, a row for each network and method."""
    means = []
    for title in titles_of(rows):
        mine = [row for row in rows if title_of(row) == title]
        about = {key: mine[0][key] for key in ("model", "mode", "samples")}
        measures = (*MEASURES, "relative_confidence")
        means.append(about | {key: mean_of_known([row[key] for row in mine]) for key in measures})
    return means
