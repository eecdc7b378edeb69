"""The segmenters that a worker keeps from video to video: opening one takes seconds, a short video does not."""

from dataclasses import replace

import torch

from app.video.flags import VideoJob
from app.video.job import needs_probs, open_for
from app.video.recent import Recent
from core.method import draws_dropout
from core.segmenter import Segmenter
from export.run.networks import FrameNetwork


class Segmenters:
    """A cache of segmenters for one thread; each serves one video at a time."""

    def __init__(self) -> None:
        self._open, self._compiled = Recent[Segmenter](), Recent[FrameNetwork]()

    def take(self, job: VideoJob) -> Segmenter:
        """A segmenter for a new stream, in its initial state. Raises InputError for options that the model cannot
        fulfil."""
        key = replace(job.options, view="overlay", compute=replace(job.options.compute, seed=0), max_frames=None)
        segmenter = self._open.get(key, lambda: self._make(job))
        if draws_dropout(segmenter.method.mode):  # its masks follow from the seed only where it starts with them
            self._open.drop(key)
            self._compiled.clear()
            segmenter = self._make(job)
        segmenter.reset()
        segmenter.resets.clear()
        segmenter.clock.samples.clear()
        segmenter.keep_probs = needs_probs(job)
        return segmenter

    def _make(self, job: VideoJob) -> Segmenter:
        torch.manual_seed(job.options.compute.seed)
        return open_for(job, take=self._compiled.get)
