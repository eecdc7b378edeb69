"""Frames as candidates for labels: their class shares, familiarity, disagreement and expected error, and the choice."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from steadyseg.app.executors import RunOptions
from steadyseg.app.labelling.shared import single_frames
from steadyseg.app.network_plan import gives_dropout
from steadyseg.app.open_model import make_segmenter
from steadyseg.core.errors import InputError
from steadyseg.core.frame import Frame, Maps
from steadyseg.core.method import MethodOptions
from steadyseg.core.model.model import Model
from steadyseg.export.file.onnx_file import OnnxFile
from steadyseg.seg.selection import Chosen, choose_frames, mean_ranks, standardise

PASSES = 5
"""Dropout passes for the disagreement; the included networks are calibrated for this number."""
GRID = 3, 4
"""Rows and columns of the cells whose class shares, beside the whole frame's, are a frame's features."""


class Candidate(NamedTuple):
    """A candidate frame."""

    recording: int
    """Number of the video, or of the group of images whose names begin alike."""
    number: int
    """Frame number in its video."""
    time_s: float
    features: tuple[np.ndarray, ...]
    """Class shares of the whole frame, (K,), and of each cell of `GRID`, (K * cells,): mean probabilities."""
    criteria: dict[str, float]
    """Expected error, disagreement and unusualness (1 - `Maps.familiarity`), 0..1, as far as the network has them. A
    higher value is more worth a label."""


class FrameMeter:
    """Measures single frames with a network: one pass without dropout, and `PASSES` passes with dropout for the
    disagreement. A graph file computes its own method."""

    def __init__(self, model: Model | OnnxFile) -> None:
        self._still = make_segmenter(model, single_frames(model), RunOptions(keep_probs=True))
        self._passes = None
        if isinstance(model, Model) and gives_dropout(model.meta):
            self._passes = make_segmenter(model, MethodOptions(mode="bnn", samples=PASSES), RunOptions())

    def measure(self, image: np.ndarray) -> tuple[tuple[np.ndarray, ...], dict[str, float], Maps]:
        """Returns features and criteria of an image (H, W, 3) uint8, as in `Candidate`, and its maps."""
        frame = Frame(image, 0, 0.0, discontinuity=True)
        maps = self._still.step(frame)
        criteria = {"expected error": 1 - float(maps.confidence.mean()) / 255}
        if self._passes:
            criteria["disagreement"] = float(self._passes.step(frame).disagreement.mean()) / 255
        if maps.familiarity is not None:
            criteria["unusualness"] = 1 - maps.familiarity
        return class_shares(maps.probs), criteria, maps


def class_shares(probs: np.ndarray | None) -> tuple[np.ndarray, ...]:
    """Returns the features of a frame, as in `Candidate`, from its probabilities (K, h, w)."""
    assert probs is not None  # the segmenter keeps them
    rows = np.array_split(probs, GRID[0], axis=1)
    cells = [cell.mean((1, 2)) for row in rows for cell in np.array_split(row, GRID[1], axis=2)]
    return probs.mean((1, 2)), np.concatenate(cells)


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
