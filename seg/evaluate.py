"""Metrics of labelled frames, taken from the frame loop that the product runs."""

import dataclasses
from collections.abc import Iterable, Iterator
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from core.classes import ClassList
from core.errors import InputError
from core.evaluation.metrics import StreamingMetrics
from core.frame import Frame, Maps
from core.seeds import mix_seed


def mark_stills(frames: Iterable[Frame]) -> Iterator[Frame]:
    """The protocol `stills`: every frame is marked as a discontinuity, so that none has a temporal state before it."""
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


class FrameMetrics:
    """Streaming metrics of labelled frames; frames without a label are counted and do not change the metrics."""

    def __init__(self, num_classes: int, void: int) -> None:
        self.metrics = StreamingMetrics(num_classes, void)
        self.frames = 0
        self.unlabelled = 0
        self._last = -2

    @classmethod
    def of(cls, classes: ClassList) -> "FrameMetrics":
        return cls(len(classes), classes.void_id)

    def update(self, frame: Frame, maps: Maps) -> None:
        """Adds one frame; probabilities are enlarged bilinearly where the label has another size."""
        if frame.label is None:
            self.unlabelled += 1
            return
        if maps.probs is None:
            raise ValueError("metrics need probabilities: open the segmenter with keep_probs=True")
        probs = enlarge(torch.from_numpy(maps.probs)[None], frame.label.shape)
        label = torch.from_numpy(frame.label)[None].long()
        follows = frame.index == self._last + 1 and not frame.discontinuity
        self.metrics.update(probs, label, continues=follows)
        self.frames += 1
        self._last = frame.index

    def result(self) -> dict[str, Any]:
        """The metrics of all labelled frames; InputError where there was none."""
        if not self.frames:
            raise InputError("no frame had a label, so there is nothing to measure against")
        return self.metrics.result()

    @property
    def measurable(self) -> bool:
        """True if a labelled pixel that is not void was seen, so that there is a result."""
        return self.metrics.valid_samples > 0
