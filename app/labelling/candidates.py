"""Frames of videos as candidates for labels: their features, novelty, disagreement and expected error."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import torch

from app.executors import RunOptions, executor
from app.open_model import resolve_method
from app.sources.image_folder import FolderSource
from app.sources.source import Source
from core.dropout import has_dropout
from core.errors import InputError
from core.frame import Frame, Maps
from core.method import MethodOptions
from core.model.model import Model
from core.seeds import mix_seed
from core.segmenter import Segmenter
from core.stages import StageFeatures
from seg.novelty.fit import default_stages
from seg.selection import Chosen, choose_frames, mean_ranks, standardise
from seg.torch_executor import TorchExecutor

PASSES = 5
"""Dropout passes for the disagreement; the included networks are calibrated for as many."""
PER_CHOICE = 10
"""Candidates for each frame to choose, where a video has as many; else one a second."""


class Measured(NamedTuple):
    """A candidate as its network sees it."""

    features: tuple[np.ndarray, ...]
    """(C,) mean features of each stage."""
    criteria: dict[str, float]
    """Novelty, disagreement and expected error, 0..1, more being more worth a label; those that the network has."""
    maps: Maps


class FrameMeter:
    """Measures single frames with a checkpoint: one pass without dropout, and `PASSES` with it for the disagreement."""

    def __init__(self, model: Model) -> None:
        run = RunOptions("torch", "fp32", keep_probs=True)
        still = executor(model, resolve_method(model, MethodOptions(mode="dnn")), run)
        if not isinstance(still, TorchExecutor):
            raise TypeError(f"torch was asked for, got {still.name}")
        self._still = Segmenter(still)
        self._passes: Segmenter | None = None
        network = still.module.predictor.get_submodule("network")
        self._features = StageFeatures(network, default_stages(network))
        if has_dropout(network):
            method = resolve_method(model, MethodOptions(mode="bnn", samples=PASSES))
            self._passes = Segmenter(executor(model, method, replace(run, keep_probs=False)))

    def measure(self, image: np.ndarray, number: int) -> Measured:
        """Measures an image (H, W, 3) uint8 RGB; its `number` seeds the dropout masks."""
        frame = Frame(image, 0, 0.0, discontinuity=True)
        maps = self._still.step(frame)
        features = tuple(found.mean((0, 2, 3)).cpu().numpy() for found in self._features.take())
        criteria = {"expected error": 1 - float(maps.confidence.mean()) / 255}
        if self._passes:
            torch.manual_seed(mix_seed(0, number))
            criteria["disagreement"] = float(self._passes.step(frame).disagreement.mean()) / 255
        if maps.novelty is not None:
            criteria["novelty"] = 1 - maps.novelty
        return Measured(features, criteria, maps)


@dataclass(frozen=True)
class Candidates:
    """Measured frames of all recordings; (N,) arrays unless said otherwise."""

    features: list[np.ndarray]
    """(N, C) by stage."""
    criteria: Mapping[str, np.ndarray]
    recordings: np.ndarray
    indices: np.ndarray
    """Frame numbers in their recordings."""
    times_s: np.ndarray

    def choose(self, count: int, labelled: Sequence[tuple[np.ndarray, ...]] = ()) -> list[Chosen]:
        """Chooses frames that are worth a label, far from the `labelled` ones, (C,) features by stage, and from each
        other."""
        stages = [np.stack([*found, *(one[stage] for one in labelled)]) for stage, found in enumerate(self.features)]
        features, scores = standardise(stages), mean_ranks(self.criteria.values())
        ours, known = features[: len(scores)], features[len(scores) :]
        return choose_frames(ours, scores, self.recordings, self.times_s, count, known)


def spaced(source: Source, count: int) -> Iterator[Frame]:
    """Yields the frames that are candidates: all images of a folder; of a video `PER_CHOICE` times `count`, evenly
    spaced, or one a second where that is more. InputError for a camera, which has no end."""
    if source.info.live:
        raise InputError(f"{source.info.name}: a live source has no end; record it first: steadyseg video ... -o FILE")
    step = 1
    if not isinstance(source, FolderSource):
        step = max(1, round(source.info.fps))
        step = step if source.info.length is None else min(step, max(1, source.info.length // (PER_CHOICE * count)))
    return (frame for frame in source if frame.index % step == 0)


def gather(rows: Sequence[tuple[int, int, float, Measured]]) -> Candidates:
    """Makes candidates of (recording, frame number, seconds, measured); InputError for none."""
    if not rows:
        raise InputError("no frame could be read, so there is none to choose")
    numbers, indices, times_s, measured = zip(*rows, strict=True)
    return Candidates(
        [np.stack(stage) for stage in zip(*(one.features for one in measured), strict=True)],
        {name: np.array([one.criteria[name] for one in measured]) for name in measured[0].criteria},
        np.array(numbers),
        np.array(indices),
        np.array(times_s),
    )
