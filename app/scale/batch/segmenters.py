"""The segmenters that a worker keeps from video to video: opening one takes seconds, a short video does not."""

from collections.abc import Callable, Hashable
from dataclasses import replace
from typing import TypeVar

import torch

from app.video.flags import VideoJob
from app.video.job import needs_probs, open_for
from core.method import draws_dropout
from core.segmenter import Segmenter
from export.run.networks import FrameNetwork

MOST = 4
"""Largest number of segmenters and of compiled networks (40 MB each at 360 pixels of height); the least recently
used one is dropped."""
T = TypeVar("T")


class Segmenters:
    """A cache of segmenters for one thread; each serves one video at a time."""

    def __init__(self) -> None:
        self._open: dict[Hashable, Segmenter] = {}
        self._compiled: dict[Hashable, FrameNetwork] = {}

    def take(self, job: VideoJob) -> Segmenter:
        """A segmenter for a new stream, in its initial state. Raises InputError for options that the model cannot
        fulfil."""
        key = replace(job.options, view="overlay", compute=replace(job.options.compute, seed=0), max_frames=None)
        segmenter = recall(self._open, key, lambda: self._make(job))
        if draws_dropout(segmenter.method.mode):  # its masks follow from the seed only where it starts with them
            self._open.pop(key)
            self._compiled.clear()
            segmenter = self._make(job)
        segmenter.reset()
        segmenter.resets.clear()
        segmenter.clock.samples.clear()
        segmenter.keep_probs = needs_probs(job)
        return segmenter

    def _make(self, job: VideoJob) -> Segmenter:
        torch.manual_seed(job.options.compute.seed)
        return open_for(job, take=lambda key, make: recall(self._compiled, key, make))


def recall(kept: dict[Hashable, T], key: Hashable, make: Callable[[], T]) -> T:
    """The cached value of a key, or a new one; the least recently used value makes room for it."""
    value = kept.pop(key) if key in kept else make()
    kept[key] = value  # the last one of the dict is the latest
    while len(kept) > MOST:
        del kept[next(iter(kept))]
    return value
