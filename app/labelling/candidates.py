"""Frames as candidates for labels: their features, familiarity, disagreement and expected error, and the choice."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch

from steadyseg.app.executors import RunOptions, executor
from steadyseg.app.open_model import resolve_method
from steadyseg.core.dropout import has_dropout
from steadyseg.core.errors import InputError
from steadyseg.core.frame import Frame, Maps
from steadyseg.core.method import MethodOptions
from steadyseg.core.model.model import Model
from steadyseg.core.seeds import mix_seed
from steadyseg.core.segmenter import Segmenter
from steadyseg.core.stages import StageFeatures
from steadyseg.seg.novelty.fit import default_stages
from steadyseg.seg.selection import Chosen, choose_frames, mean_ranks, standardise
from steadyseg.seg.torch_executor import torch_executor

PASSES = 5
"""Dropout passes for the disagreement; the included networks are calibrated for this number."""


class Candidate(NamedTuple):
    """A candidate frame."""

    recording: int
    """Number of the video, or of the group of images whose names begin alike."""
    number: int
    """Frame number in its video."""
    time_s: float
    features: tuple[np.ndarray, ...]
    """(C,) mean features of each stage of the network."""
    criteria: dict[str, float]
    """Expected error, disagreement and unusualness (1 - `Maps.familiarity`), 0..1, as far as the network has them. A
    higher value is more worth a label."""


class FrameMeter:
    """Measures single frames with a checkpoint: one pass without dropout, and `PASSES` passes with dropout for the
    disagreement."""

    def __init__(self, model: Model) -> None:
        still = torch_executor(model, resolve_method(model, MethodOptions(mode="dnn")))
        network = still.module.predictor.get_submodule("network")
        self._features = StageFeatures(network, default_stages(network))
        self._still, self._passes = Segmenter(still), None
        if has_dropout(network):
            method = resolve_method(model, MethodOptions(mode="bnn", samples=PASSES))
            self._passes = Segmenter(executor(model, method, RunOptions("torch", "fp32")))

    def measure(self, image: np.ndarray, number: int) -> tuple[tuple[np.ndarray, ...], dict[str, float], Maps]:
        """Returns features and criteria of an image (H, W, 3) uint8, as in `Candidate`, and its maps; the `number`
        seeds the dropout masks."""
        frame = Frame(image, 0, 0.0, discontinuity=True)
        maps = self._still.step(frame)
        features = tuple(found.mean((0, 2, 3)).cpu().numpy() for found in self._features.take())
        criteria = {"expected error": 1 - float(maps.confidence.mean()) / 255}
        if self._passes:
            torch.manual_seed(mix_seed(0, number))
            criteria["disagreement"] = float(self._passes.step(frame).disagreement.mean()) / 255
        if maps.familiarity is not None:
            criteria["unusualness"] = 1 - maps.familiarity
        return features, criteria, maps


def choose(candidates: Sequence[Candidate], count: int, labelled: Sequence[tuple[np.ndarray, ...]]) -> list[Chosen]:
    """Chooses frames that are worth a label, far from each other and from the `labelled` frames, given by their
    features. InputError without candidates."""
    if not candidates:
        raise InputError("no frame could be read, so there is none to choose")
    stages = zip(*(one.features for one in candidates), *labelled, strict=True)
    features = standardise([np.stack(stage) for stage in stages])
    scores = mean_ranks(np.array([list(one.criteria.values()) for one in candidates]))
    recordings, times_s = (np.array(values) for values in zip(*((one[0], one[2]) for one in candidates), strict=True))
    ours, known = np.split(features, [len(candidates)])
    return choose_frames(ours, scores, recordings, times_s, count, known)
