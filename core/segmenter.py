"""Segmentation of a stream, frame by frame, with the state of the frames before."""

import dataclasses
import math
import time
from collections import Counter
from collections.abc import Generator, Iterable, Mapping
from contextlib import nullcontext
from typing import Any, Protocol, runtime_checkable

import numpy as np

from steadyseg.core.classes import ClassList
from steadyseg.core.cuts import CutDetector
from steadyseg.core.expected import DOUBTFUL
from steadyseg.core.frame import Frame, FrameScores, Maps, Verdict, energy_map
from steadyseg.core.method import Method
from steadyseg.core.motion import Motion, MotionEstimator
from steadyseg.core.options import Every
from steadyseg.core.reference import NOVEL, ReferenceScores, smooth_score
from steadyseg.core.stage_clock import StageClock

FPS = 25
"""Frames per second of pictures that come without a time."""


class Continuity:
    """Gaps between the frames of a stream: dropped frames widen them; a break, a step back or a new size starts
    anew."""

    def __init__(self) -> None:
        self.resets: Counter[str] = Counter()
        """Number of breaks by cause; `not_finite`: frames that the mean leaves out."""
        self.forget()

    def forget(self) -> None:
        """Makes the next frame the first of a stream."""
        self._size: tuple[int, ...] | None = None
        self._index = -1

    def numbered(self, image: Any) -> Frame:
        """The next frame of the stream from a picture alone: the index goes on by 1, and the time by 1 / `FPS` s."""
        index = self._index + 1
        return Frame(np.asarray(image), index, index / FPS)

    def gap_before(self, frame: Frame) -> int:
        """Source frames since the previous one (1: none was dropped), or 0 where this frame starts anew."""
        size, index = self._size, self._index
        self._size, self._index = frame.image.shape, frame.index
        if size is None:
            return 0
        if frame.discontinuity or frame.index <= index:
            self.resets["discontinuity"] += 1
            return 0
        if frame.image.shape != size:
            self.resets["size_change"] += 1
            return 0
        return frame.index - index


class Backend(Protocol):
    """Software that computes the maps of a frame, and holds the temporal state: torch, the CPU backend or a whole
    graph."""

    name: str
    """Name, version and number format for the report: `torch 2.9 fp32`, `openvino 2026.4 bf16`."""
    device: str
    """Device that really computes: `cpu`, `cuda`."""
    clock: StageClock
    keep_probs: bool
    """True if maps come with the mean probabilities, at the cost of a copy of a few MB."""
    reference: ReferenceScores | None
    """Scores of the reference frames; None where no familiarity is computed. A whole graph has its own copy."""
    classes: ClassList
    method: Method
    head_stride: int
    """1 or 2: the network's size over the size of its maps."""
    size: tuple[int, int]
    """(h, w) in pixels at which the network was trained and measured, the only size of a graph file."""

    @property
    def why(self) -> str:
        """Reason for this backend, for the report."""

    def state_size(self, height: int, width: int) -> tuple[int, int]:
        """(h, w) of the temporal mean of frames of H x W, at which motion is estimated."""

    def compute(self, image: np.ndarray, gap: int, motion: Motion | None) -> tuple[Maps, FrameScores | None]:
        """Computes the maps of an image (H, W, 3) uint8 RGB; the second value is its scores, None if the maps contain
        it.

        `gap`: source frames since the last image, 0 to start anew. The clock gets the time of preprocess, network and
        smoothing.
        """


@runtime_checkable
class Carrying(Protocol):
    """A backend whose network runs on some frames alone, maybe in a thread of its own (runtime/every.py)."""

    calls: int
    """Network calls that are done."""
    every: Every

    def wait(self) -> None:
        """Waits for the network call that still runs, and forgets it."""

    def carried_from(self) -> tuple[Maps, float]:
        """The maps of the call that the newest maps were carried from, and the share of their accuracy that is lost."""


class Segmenter:
    """Segments one stream with a backend; frames come in the order of their index."""

    def __init__(self, backend: Backend, fit: Mapping[str, Any] | None = None) -> None:
        """`fit`: the record of the calibration in use, with its conformal thresholds; None without a calibration."""
        self._backend, self.clock, self._continuity = backend, backend.clock, Continuity()
        self.classes, self.method, self.size = backend.classes, backend.method, backend.size
        self.head_stride, self.reference, self.fit = backend.head_stride, backend.reference, fit or {}
        self.training_data = self.reference.data if self.reference else ""
        self._expected = self.reference.expected if self.reference and self.method.calibrated else None
        self._carrying, self._frames = backend if isinstance(backend, Carrying) else None, 0
        self._estimate_motion = MotionEstimator(fine=self._carrying is not None)
        self._is_cut = CutDetector() if self.method.tau or self._carrying else None
        self._score = (0.0, 0.0)
        self.reset()

    @property
    def backend(self) -> str:
        """Name, version and number format of the backend."""
        return self._backend.name

    @property
    def device(self) -> str:
        return self._backend.device

    @property
    def why(self) -> str:
        """Reason for this backend."""
        return self._backend.why

    @property
    def error(self) -> float | None:
        """Error of the expected accuracy of a frame on data that the fit did not see; None without a fit."""
        return self._expected.error if self._expected else None

    @property
    def score(self) -> float | None:
        """Familiarity score of the last frame, in standard deviations of the training domain; None without a record."""
        return self._told[0] if self._told else None

    @property
    def every(self) -> Every:
        """The frames that the network runs on."""
        return self._carrying.every if self._carrying else 1

    @property
    def network_frames(self) -> int:
        """Number of frames so far whose network call is done."""
        return self._carrying.calls if self._carrying else self._frames

    @property
    def keep_probs(self) -> bool:
        """True where maps come with the mean probabilities."""
        return self._backend.keep_probs

    @keep_probs.setter
    def keep_probs(self, wanted: bool) -> None:
        self._backend.keep_probs = wanted

    @property
    def resets(self) -> Counter[str]:
        """Number of breaks of the temporal mean by cause: it starts anew, or leaves out a frame (`not_finite`)."""
        return self._continuity.resets

    def reset(self) -> None:
        """Forgets all earlier frames."""
        self._continuity.forget()
        self._told: tuple[float, np.ndarray] | None = None  # score and energy of the last network call
        self._score_gap = 0

    def wait(self) -> None:
        """Waits for a network call that runs in a thread of its own, before the network is given away."""
        if self._carrying:
            self._carrying.wait()

    def frame_of(self, picture: Frame | np.ndarray) -> Frame:
        """The next frame of the stream. A picture (H, W, 3) uint8 RGB gets the next index, and the time of a stream of
        25 frames/s."""
        return picture if isinstance(picture, Frame) else self._continuity.numbered(picture)

    def step(self, frame: Frame | np.ndarray) -> Maps:
        """Computes the maps of the next frame, which may be a picture alone (`frame_of`)."""
        frame = self.frame_of(frame)
        self._frames += 1
        with self.clock.measure("motion") if self._is_cut else nullcontext():
            gap, cut = self._gap_before(frame)
            motion = self._motion_to(frame, gap)
        maps, scores = self._backend.compute(frame.image, gap, motion)
        started = time.perf_counter()
        maps = dataclasses.replace(maps, cut=cut, **self._about(frame, gap, maps, scores))
        self.clock.extend("smoothing", (time.perf_counter() - started) * 1e3)
        return maps

    def _motion_to(self, frame: Frame, gap: int) -> Motion | None:
        """Not beside the network: two cores took 16.4 ms a frame that way, and 16.0 ms one after the other
        (road-realtime). OpenVINO gives each core its half of a layer, so the slower core decides."""
        if not (self.method.motion or self._carrying):
            return None
        return self._estimate_motion(frame.image, self._backend.state_size(*frame.image.shape[:2]), gap)

    def _about(self, frame: Frame, gap: int, maps: Maps, scores: FrameScores | None) -> dict[str, Any]:
        """The fields of a frame's maps that the backend does not compute."""
        about: dict[str, Any] = {}
        if not maps.finite:
            self.resets["not_finite"] += 1
            about["probs"] = None if maps.probs is None else np.full_like(maps.probs, 1.0 / len(maps.probs))
        seen, lost = (maps, 0.0) if maps.network or not self._carrying else self._carrying.carried_from()
        familiarity, accuracy = maps.familiarity, float(seen.confidence.mean()) / 255
        self._score_gap = self._score_gap + gap if gap else 0
        if scores is not None and self.reference is not None:
            score = self._mean_score(scores.score, self._score_gap, maps.finite)
            self._told, self._score_gap = (score, energy_map(scores.energy, maps.label.shape)), 0
        if self._told and self.reference is not None:
            score, about["energy"] = self._told
            familiarity = self.reference.share(score)
            if self._expected and maps.finite:
                accuracy = self._expected.of(accuracy, score, seen.label)
        elif familiarity is not None:
            accuracy = seen.expected_accuracy
        accuracy *= 1.0 - lost
        known = familiarity if self._expected else None
        verdict = verdict_of(maps.finite, known, accuracy, self.method.calibrated)
        return about | {"familiarity": familiarity, "expected_accuracy": accuracy, "verdict": verdict}

    def _gap_before(self, frame: Frame) -> tuple[int, bool]:
        """Source frames since the previous frame, 0 where the stream or the scene starts anew; True at a scene cut."""
        gap = self._continuity.gap_before(frame)
        if self._is_cut and self._is_cut(frame.image, gap):
            self.resets["cut"] += 1
            return 0, True
        return gap, False

    def _mean_score(self, score: float, gap: int, finite: bool) -> float:
        """The mean score over time. A frame that is not finite is fully novel, and the mean leaves it out."""
        assert self.reference is not None
        tau, (mean, mass) = self.method.tau, self._score
        decay = math.exp(-gap / tau) if gap and tau else 0.0
        if not finite:
            self._score = mean, decay * mass
            return math.nan
        self._score = smooth_score(self.reference.bounded(score), self._score, decay)
        return self._score[0]


def verdict_of(finite: bool, familiarity: float | None, expected: float, calibrated: bool) -> Verdict:
    """What is known about a frame's labels; the arguments are as in `Maps` and `Method`."""
    if not finite:
        return "no answer"
    if not calibrated:
        return "not calibrated"
    if familiarity is None:
        return "no statistics"
    if expected >= DOUBTFUL:
        return "expected"
    return "unlike" if familiarity <= NOVEL else "doubtful"


def segment(frames: Iterable[Frame | np.ndarray], segmenter: Segmenter) -> Generator[tuple[Frame, Maps], None, None]:
    """Yields every frame with its maps. The caller owns pace, display and cancellation.

    Pictures become frames by `Segmenter.frame_of`. Closing this generator closes `frames` where that is a generator
    too, so a reader thread behind it is freed.
    """
    try:
        for frame in frames:
            frame = segmenter.frame_of(frame)
            yield frame, segmenter.step(frame)
    finally:
        close = getattr(frames, "close", None)
        if close is not None:
            close()
