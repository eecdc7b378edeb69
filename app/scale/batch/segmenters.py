"""The segmenters that a worker keeps from video to video: opening one takes seconds, a short video does not."""

from dataclasses import replace

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
        key = replace(job.options, view="overlay", max_frames=None)
        segmenter = self._open.get(key, lambda: open_for(job, take=self._compiled.get))
        if draws_dropout(segmenter.method.mode):  # it begins with the masks of the seed only where it is new
            self._open.drop(key)
            self._compiled.clear()
            segmenter = open_for(job, take=self._compiled.get)
        segmenter.reset()
        segmenter.resets.clear()
        segmenter.clock.samples.clear()
        segmenter.keep_probs = needs_probs(job)
        return segmenter
