"""Study `perturbations`: consistency of predictions while a picture changes a little from frame to frame."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import Tensor

from steadyseg.core.errors import InputError
from steadyseg.core.method import Method
from steadyseg.core.seeds import mix_seed
from steadyseg.studies.harness.pictures import Pictures, batches_of, chosen_places
from steadyseg.studies.harness.rows import Row
from steadyseg.studies.harness.target import TargetNetwork
from steadyseg.studies.robustness.corruptions import require_published
from steadyseg.studies.robustness.flags import RobustnessOptions, Watch, no_progress
from steadyseg.studies.robustness.measures.perturbations import (
    GENERATED,
    PUBLISHED,
    PUBLISHED_EXTRA,
    compared_with,
    perturb,
)
from steadyseg.studies.robustness.measures.published_images import open_perturbation
from steadyseg.studies.robustness.measures.temporal_consistency import (
    MEASURES,
    TemporalConsistency,
    relative_confidence,
)

MOVING = ("translate", "rotate", "tilt", "scale", "shear")
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
    """`rows` by perturbation and `means` over those that the published mean is of."""
    source = PublishedSequences(options, pictures) if options.cifar_p else MadeSequences(options, pictures)
    rows: list[Row] = []
    sums: dict[tuple[str, str, Method], Sums] = {}
    dense = subjects[0].is_segmentation
    jobs = [(name, numbers) for name in source.types for numbers in batches_of(source.count, 1 if dense else GROUP)]
    for name, numbers in watch(jobs, "perturbations"):
        sequences, labels = source.sequences(name, numbers)
        if dense and labels is not None and bool((labels == subjects[0].meta.classes.void_id).all()):
            continue  # a still without a label says nothing
        for subject in subjects:
            void = subject.meta.classes.void
            methods, seed = subject.methods(options.sample_counts), mix_seed(options.seed, numbers.start)
            for method, probs in along(subject, sequences, methods, pictures.batch, seed):
                key = (name, subject.name, method)
                found = sums.setdefault(key, Sums(TemporalConsistency(len(subject), compared_with(name), void)))
                truth = None if labels is None else subject.labels_at(labels, (probs.shape[-2], probs.shape[-1]))
                found.consistency.update(probs, truth)
                if truth is not None and not (dense and name in MOVING):
                    found.confidence += [mean_confidence(*one, void) for one in zip(probs, truth, strict=True)]
    for (name, model, method), found in sums.items():
        confidence = sum(found.confidence) / len(found.confidence) if found.confidence else None
        about = {"model": model, "mode": method.mode, "samples": method.samples, "perturbation": name}
        rows.append({**about, **found.consistency.result(), "relative_confidence": confidence})
    return {
        "sequences": source.count,
        "perturbations": list(source.types),
        "published": options.cifar_p.name if options.cifar_p else None,
        "rows": rows,
        "means": means_of([row for row in rows if row["perturbation"] in source.counted]),
        "notes": [*source.notes, *definitions(subjects)],
    }


def definitions(subjects: Sequence[TargetNetwork]) -> list[str]:
    """Definitions of the figures."""
    notes = [
        "consistency: share of pairs of neighbouring frames with equal arg-max; under noise, pairs of the first and "
        "each later frame",
        "cec: cross-entropy of such a pair as in the paper (Eq. 35, sum over classes); cec_reference: as in its code "
        "(mean over classes, roles swapped), which the published values fit",
    ]
    if subjects[0].is_segmentation:
        notes.append(
            f"pixel by pixel, without following the motion: in {', '.join(MOVING[:4])} it also counts what truly "
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
    """One for each network and method, over those of the published ten, or what stands in for them, that were
    measured."""
    keys = list(dict.fromkeys((row["model"], row["mode"], row["samples"]) for row in rows))
    means = []
    for model, mode, samples in keys:
        mine = [row for row in rows if (row["model"], row["mode"], row["samples"]) == (model, mode, samples)]
        row: Row = {"model": model, "mode": mode, "samples": samples}
        for measure in (*MEASURES, "relative_confidence"):
            known = [found[measure] for found in mine if found[measure] is not None]
            row[measure] = sum(known) / len(known) if known else None
        means.append(row)
    return means


class MadeSequences:
    """Sequences of the study's own pictures, drawn from the seed."""

    def __init__(self, options: RobustnessOptions, pictures: Pictures) -> None:
        self.pictures, self.seed = pictures, options.seed
        self.types = self.counted = tuple(GENERATED)
        self.count = len(pictures)
        lacking = ", ".join(name for name in PUBLISHED if name not in GENERATED)
        instead = ", ".join(name for name in GENERATED if name not in PUBLISHED)
        self.notes = [
            f"sequences are generated here with the steps of CIFAR-10-P; {instead} replaces {lacking}, which is not "
            "available",
        ]

    def sequences(self, name: str, numbers: range) -> tuple[np.ndarray, Tensor | None]:
        """(S, F, H, W, 3) uint8 and the pictures' labels (S, ...)."""
        made = [perturb(self.pictures.images[n], name, self.seed, self.pictures.places[n]) for n in numbers]
        return np.stack(made), self.pictures.truth(numbers)


class PublishedSequences:
    """The files of CIFAR-10-P, which have no labels beside them."""

    def __init__(self, options: RobustnessOptions, pictures: Pictures) -> None:
        folder = options.cifar_p
        assert folder is not None
        require_published(folder, pictures)
        self.types = tuple(name for name in (*PUBLISHED, *PUBLISHED_EXTRA) if (folder / f"{name}.npy").is_file())
        if not self.types:
            raise InputError(
                f"{folder}: has none of the published files; expected {', '.join(PUBLISHED)}, each as .npy"
            )
        self.counted = tuple(name for name in self.types if name in PUBLISHED)
        self.files = {name: open_perturbation(folder, name) for name in self.types}
        whole = min(map(len, self.files.values()))
        self.places = chosen_places(whole, len(pictures), options.seed)
        self.count = len(self.places)
        self.notes = [
            f"sequences are read from {folder.name}: {self.count} of {whole}",
            "no relative confidence: the published sequences have no labels",
        ]
        lacking = [name for name in PUBLISHED if name not in self.types]
        if lacking:
            self.notes.append(f"means are over {len(self.counted)} of the ten files: without {', '.join(lacking)}")

    def sequences(self, name: str, numbers: range) -> tuple[np.ndarray, Tensor | None]:
        """(S, F, 32, 32, 3) uint8, and no labels."""
        return np.asarray(self.files[name][[self.places[n] for n in numbers]]), None
