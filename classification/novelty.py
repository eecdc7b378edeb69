"""Fits a classifier's statistics of its training domain (`steadyseg calibrate --novelty`).

A picture is novel if its features are far from every class mean (Lee et al. 2018, arXiv 1807.03888). The class means
are fitted on the pictures that the classifier was trained on, unchanged and as simulated other cameras show them. The
scale of novelty and the temperature are fitted on other pictures: unchanged, from other cameras, and under
`TUNING_CORRUPTIONS` and textures.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from classification.data.labelled import ClassificationSet
from classification.evaluate import batch_size
from core.corruptions.camera_changes import random_camera
from core.corruptions.corruptions import SMALLEST_SIDE
from core.corruptions.tuning import with_changes
from core.errors import InputError
from core.model.checkpoint import CheckpointMeta
from core.novelty.frame_temperature import fit_frame_temperature, shares
from core.novelty.gaussians import GaussianSums
from core.novelty.head import NoveltyHead
from core.novelty.record import NoveltyFit, NoveltyRecord, Scale, novelty_tensors, rounded
from core.novelty.statistics import ClassDistance, RegionDistance, pooled, score_weights
from core.preprocess import Normalize
from core.reference import MIN_FRAMES
from core.stages import StageFeatures, named_stages

STAGES = 4
"""Stages that are compared, the last ones; early ones tell noise from pictures, late ones tell classes
(docs/studies/novelty)."""
ENTROPY_WEIGHT = 0.5
"""Other than a street, a picture of one thing is also novel where the network cannot decide (0, 0.5 and 1 were
tried)."""
CLEAN_SHARE = 0.8
"""One picture tells less of a change than a frame, so temperatures would rise at home too: with 0.5 the mean confidence
of unchanged held-back pictures fell 6 to 11 points below their accuracy, with 0.8 4 to 8."""
MAX_CHANGED = 500
"""Pictures that the temperature is fitted on under EXTRA and textures, in 15 ways each."""
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
    held_back: ClassificationSet,
    stages: tuple[str, ...],
    device: torch.device,
    watch: Watch,
) -> NoveltyFit:
    """Fits all statistics, and the temperature of a picture for mode dnn; the network's dropout must be off. InputError
    for an unknown stage, too few held-out pictures, and features that are not finite.
    """
    if len(held_back) < MIN_FRAMES:
        raise InputError(
            f"{len(held_back)} pictures to fit novelty on; 5 % of fewer than {MIN_FRAMES} is less than one"
        )
    if meta.height < SMALLEST_SIDE:
        raise InputError(
            f"pictures of {meta.height} pixels a side cannot be changed as the fit needs; {SMALLEST_SIDE} can"
        )
    looker, weights = FeatureExtractor(network, meta, stages, device), score_weights(len(stages), ENTROPY_WEIGHT)
    try:
        distances, regions, shrinkage = fit_distances(looker, with_cameras(trained, meta.height, watch, "class means"))
        head = NoveltyHead.without_scale(stages, [1] * len(stages), distances, regions).to(device)
        own = with_cameras(held_back, meta.height, watch, "training domain")
        rows, _, _, logs = zip(*looker.statistics(own, head), strict=True)
        scale = Scale.of(torch.stack(rows), torch.cat(logs), weights)
        clean: list[bool] = []
        changed = tuning_pictures(held_back, meta.height, watch, clean)
        statistics, logits, labels, _ = zip(*looker.statistics(changed, head), strict=True)
    finally:
        looker.taps.remove()
    fit = fit_frame_temperature(
        scale.standardise(torch.stack(statistics)), list(logits), list(labels), shares(clean, CLEAN_SHARE)
    )
    record = NoveltyRecord(
        stages=stages,
        steps=(1,) * len(stages),
        weights=rounded(weights),
        **asdict(scale),
        temperatures={"dnn": fit.record()},
        dropout={},
        about={
            "data": trained.name,
            "frames": len(trained),
            "held_back": len(held_back),
            "held_back_pictures": len(rows),
            "untrained": len(held_back),
            "frame_list_hash": trained.list_hash,
            "shrinkage": shrinkage,
            "note": "",
            **scale.alarms(),
        },
    )
    return NoveltyFit(asdict(record), novelty_tensors(stages, distances, regions))


class FeatureExtractor:
    """Runs a classifier and returns its logits and the features of its stages."""

    def __init__(self, network: nn.Module, meta: CheckpointMeta, stages: tuple[str, ...], device: torch.device) -> None:
        self.network, self.stages, self.device = network.to(device).eval(), stages, device
        self.taps, self.normalize = StageFeatures(network, stages), Normalize(meta.mean, meta.std).to(device)
        self.at_once, self.classes = batch_size(meta.height), len(meta.classes)

    @torch.inference_mode()
    def __call__(self, images: Sequence[np.ndarray]) -> tuple[Tensor, list[Tensor]]:
        """B pictures (s, s, 3) uint8 -> logits (B, K) and the features of every stage."""
        pixels = torch.from_numpy(np.stack(images)).to(self.device).permute(0, 3, 1, 2)
        return self.network(self.normalize(pixels)), self.taps.take()

    def in_batches(self, pictures: Iterable[Labelled]) -> Iterator[tuple[Tensor, list[Tensor], Tensor]]:
        """Yields logits (B, K), the features of every stage and labels (B,), batch by batch."""
        waiting: list[Labelled] = []
        for one in pictures:
            waiting.append(one)
            if len(waiting) == self.at_once:
                yield *self([image for image, _ in waiting]), torch.tensor([label for _, label in waiting])
                waiting.clear()
        if waiting:
            yield *self([image for image, _ in waiting]), torch.tensor([label for _, label in waiting])

    def statistics(self, pictures: Iterable[Labelled], head: NoveltyHead) -> Iterator[tuple[Tensor, ...]]:
        """Yields for every picture its statistics (S,), logits (1, K), label (1,) and the log distances of its
        positions."""
        for logits, features, labels in self.in_batches(pictures):
            rows = head.statistics(features, logits).cpu().double()
            places = head.regions(features[-1]).cpu().flatten(1)
            yield from zip(rows, logits.cpu().split(1), labels.split(1), places, strict=True)


def fit_distances(
    looker: FeatureExtractor, pictures: Iterable[Labelled]
) -> tuple[list[ClassDistance], RegionDistance, dict[str, float]]:
    """Fits the distances of every stage in one pass and O(C^2) memory.

    The record also needs regions, which are fitted on the last stage, with the means of its classes.
    """
    sums: list[GaussianSums] = []
    for _, features, labels in looker.in_batches(pictures):
        means = [pooled(found) for found in features]
        sums = sums or [GaussianSums(mean.shape[1], looker.classes) for mean in means]
        for total, mean in zip(sums, means, strict=True):
            total.update(mean, labels, frames=len(labels))
    fits = [total.fit() for total in sums]
    shrinkage = {name: round(fit.shrinkage, 6) for name, fit in zip(looker.stages, fits, strict=True)}
    return [ClassDistance.of(fit) for fit in fits], RegionDistance.of(fits[-1]), shrinkage


def with_cameras(data: ClassificationSet, size: int, watch: Watch, title: str) -> Iterator[Labelled]:
    """Every picture unchanged, then as another camera would give it."""
    for place in watch(range(len(data)), title):
        image, label = data[place]
        view = data.evaluation_view(image, size)
        yield view, label
        yield random_camera(view, np.random.default_rng([place, 0])), label


def tuning_pictures(data: ClassificationSet, size: int, watch: Watch, clean: list[bool]) -> Iterator[Labelled]:
    """Pictures spread over the set, each unchanged and in 15 changed forms, one at a time; `clean` gets the index of
    each."""
    places = np.unique(np.linspace(0, len(data) - 1, min(len(data), MAX_CHANGED)).astype(int))
    for place in watch([int(one) for one in places], "temperature of a picture"):
        image, label = data[place]
        for is_clean, changed in with_changes(data.evaluation_view(image, size), place, place):
            clean.append(is_clean)
            yield changed, label
