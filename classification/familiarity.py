"""Fits a classifier's statistics of its training domain (`steadyseg calibrate --familiarity`).

A picture is novel if its features are far from every class mean (Lee et al. 2018, arXiv 1807.03888). The class means
are fitted on the pictures that the classifier was trained on, unchanged and as simulated other cameras show them. The
scale of familiarity is fitted on other pictures: unchanged, and from other cameras.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict
from itertools import islice
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from steadyseg.classification.data.labelled import ClassificationSet
from steadyseg.classification.evaluate import batch_size
from steadyseg.core.corruptions.camera_changes import random_camera
from steadyseg.core.errors import InputError
from steadyseg.core.familiarity.features import FeatureExtractor, read_statistics
from steadyseg.core.familiarity.gaussians import GaussianSums
from steadyseg.core.familiarity.head import FrameStatistics
from steadyseg.core.familiarity.record import FamiliarityRecord, Scale
from steadyseg.core.familiarity.statistics import ClassDistance, pooled, score_weights
from steadyseg.core.familiarity.stored import FamiliarityFit, familiarity_tensors
from steadyseg.core.model.checkpoint import CheckpointMeta
from steadyseg.core.reference import MIN_FRAMES
from steadyseg.core.stages import named_stages

STAGES = 4
"""Number of compared last stages: early stages detect noise, late stages classes (docs/records/familiarity)."""
ENTROPY_WEIGHT = 0.5
"""Unlike a street scene, a picture of one thing is also novel if the network is undecided (0, 0.5, 1 were tried)."""
Labelled = tuple[np.ndarray, int]
Watch = Callable[[Iterable[Any], str], Iterable[Any]]


def default_stages(network: nn.Module) -> tuple[str, ...]:
    """The last `STAGES` stages of the network. Raises InputError if it names none."""
    stages = tuple(named_stages(network))[-STAGES:]
    if not stages:
        raise InputError("the network names no stages whose features could be compared")
    return stages


def fit_statistics(
    network: nn.Module,
    meta: CheckpointMeta,
    trained: ClassificationSet,
    held_out: ClassificationSet,
    stages: tuple[str, ...],
    device: torch.device,
    watch: Watch,
) -> FamiliarityFit:
    """Fits all statistics for mode dnn; the network's dropout must be off. InputError for an unknown stage, too few
    held-out pictures, and features that are not finite.
    """
    if len(held_out) < MIN_FRAMES:
        raise InputError(
            f"{len(held_out)} pictures to fit familiarity on; 5 % of fewer than {MIN_FRAMES} is less than one"
        )
    extractor, weights = FeatureExtractor(network, meta, stages, device), score_weights(len(stages), ENTROPY_WEIGHT)
    try:
        seen = in_batches(extractor, meta.height, with_cameras(trained, meta.height, watch, "class means"))
        distances, shrinkage = fit_distances(stages, seen, len(meta.classes))
        head = FrameStatistics(stages, [1] * len(stages), distances).to(device)
        own = in_batches(extractor, meta.height, with_cameras(held_out, meta.height, watch, "training domain"))
        rows, logs = zip(*(read_statistics(head, logits, features) for logits, features, _ in own), strict=True)
        scale = Scale.of(torch.cat(rows), torch.cat(logs).flatten(), weights)
    finally:
        extractor.taps.remove()
    about = {
        "data": trained.name,
        "frames": len(trained),
        "held_out": len(held_out),
        "untrained": len(held_out),
        "frame_list_hash": trained.list_hash,
        "shrinkage": shrinkage,
        "note": "",
    }
    record = FamiliarityRecord.of(head.names, head.steps, scale, weights, about, {})
    return FamiliarityFit(asdict(record), familiarity_tensors(stages, distances))


Seen = tuple[Tensor, list[Tensor], Tensor]
"""Logits (B, K), the features of every stage and labels (B,) of a batch."""


def in_batches(extractor: FeatureExtractor, size: int, pictures: Iterable[Labelled]) -> Iterator[Seen]:
    """Runs the network on pictures (size, size, 3) uint8, as many at once as an evaluation takes."""
    pictures = iter(pictures)
    while batch := list(islice(pictures, batch_size(size))):
        images, labels = zip(*batch, strict=True)
        yield *extractor(np.stack(images), (size, size)), torch.tensor(labels)


def fit_distances(
    stages: tuple[str, ...], seen: Iterable[Seen], num_classes: int
) -> tuple[list[ClassDistance], dict[str, float]]:
    """Fits the distances of every stage in one pass and O(C^2) memory."""
    sums: list[GaussianSums] = []
    for _, features, labels in seen:
        means = [pooled(found) for found in features]
        sums = sums or [GaussianSums(mean.shape[1], num_classes) for mean in means]
        for total, mean in zip(sums, means, strict=True):
            total.update(mean, labels, frames=len(labels))
    fits = [total.fit() for total in sums]
    shrinkage = {name: round(fit.shrinkage, 6) for name, fit in zip(stages, fits, strict=True)}
    return [ClassDistance.of(fit) for fit in fits], shrinkage


def with_cameras(data: ClassificationSet, size: int, watch: Watch, title: str) -> Iterator[Labelled]:
    """Every picture unchanged, then as another camera would give it."""
    for place in watch(range(len(data)), title):
        image, label = data[place]
        view = data.evaluation_view(image, size)
        yield view, label
        yield random_camera(view, np.random.default_rng([place, 0])), label
