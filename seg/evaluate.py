"""Metrics of labelled frames, taken from the frame loop that the product runs."""

import dataclasses
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from steadyseg.core.classes import ClassList
from steadyseg.core.errors import InputError
from steadyseg.core.evaluation.metrics import CUTOFF, StreamingMetrics
from steadyseg.core.frame import Frame, Maps
from steadyseg.core.seeds import mix_seed
from steadyseg.core.segmenter import Continuity, Segmenter, segment

"""Metrics of the pixels on edges and away from them."""


def mark_stills(frames: Iterable[Frame]) -> Iterator[Frame]:
    """The protocol `stills`: every frame is marked as a discontinuity, so that no frame has a temporal state before
    it."""
    return (dataclasses.replace(frame, discontinuity=True) for frame in frames)


def seed_frames(frames: Iterable[Frame], seed: int = 0) -> Iterator[Frame]:
    """The frames, with torch's generator seeded before each, so that dropout masks depend on (seed, position) alone."""
    for place, frame in enumerate(frames):
        torch.manual_seed(mix_seed(seed, place))
        yield frame


def enlarge(probs: Tensor, size: tuple[int, ...]) -> Tensor:
    """(B, K, h, w) -> (B, K, H, W) by bilinear interpolation; returns the tensor itself where the sizes are equal."""
    if probs.shape[-2:] == size:
        return probs
    return F.interpolate(probs, size, mode="bilinear", align_corners=False)


def predict(frames: Iterable[Frame], segmenter: Segmenter) -> Iterator[tuple[Tensor, Tensor]]:
    """Yields the probabilities (1, K, H, W) and the labels (1, H, W) of the labelled frames."""
    for frame, maps in segment(frames, segmenter):
        if frame.label is not None:
            yield probs_at(frame.label, maps), torch.from_numpy(frame.label)[None]


class FrameMetrics:
    """Streaming metrics of labelled frames; frames without a label are counted and do not change the metrics."""

    def __init__(self, num_classes: int, void: int, cutoff: float = CUTOFF) -> None:
        self.metrics = StreamingMetrics(num_classes, void, cutoff=cutoff)
        self.frames = 0
        self.unlabelled = 0
        self._continuity = Continuity()

    @classmethod
    def of(cls, classes: ClassList, cutoff: float = CUTOFF) -> "FrameMetrics":
        return cls(len(classes), classes.void_id, cutoff)

    def update(self, frame: Frame, maps: Maps) -> None:
        """Adds one frame; probabilities are enlarged bilinearly where the label has another size."""
        if frame.label is None:
            self.unlabelled += 1
            return
        probs = probs_at(frame.label, maps)
        self.metrics.update(
            probs, torch.from_numpy(frame.label)[None], continues=self._continuity.gap_before(frame) == 1
        )
        self.frames += 1

    def result(self) -> dict[str, Any]:
        """The metrics of all labelled frames; InputError without a labelled frame."""
        if not self.frames:
            raise InputError("no frame had a label, so there is nothing to measure against")
        return self.metrics.result()

    @property
    def measurable(self) -> bool:
        """True if a labelled pixel that is not void was seen, so that there is a result."""
        return self.metrics.valid_samples > 0


def probs_at(label: np.ndarray, maps: Maps) -> Tensor:
    """Returns the probabilities (1, K, H, W), enlarged bilinearly to the label's size."""
    if maps.probs is None:
        raise ValueError("metrics need probabilities: open the segmenter with keep_probs=True")
    return enlarge(torch.from_numpy(maps.probs)[None], label.shape)
