"""The frame and its maps: this file defines layout and colour order for all others."""

from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np

MOTION_INPUTS = ("motion", "trust")
"""Inputs of a graph file whose mean follows motion: float (1, h / s, w / s, 2) and (1, h / s, w / s), as in
`core.motion.Motion`."""
FAMILIARITY_OUTPUTS = ("familiarity", "expected_accuracy", "energy")
"""Outputs of a graph file about the whole frame, as in `Maps`: float (1, 1) twice and uint8 (1, H, W)."""
UNKNOWN = (0, 255, 255)
"""Bytes of confidence, entropy and disagreement where the network's answer is not finite. A largest probability is
1 / K or more, at least one level of 255, so no other answer has a confidence of 0."""
Verdict = Literal["expected", "doubtful", "unlike", "no statistics", "not calibrated", "no answer"]
"""What is known about the labels of a frame.

`expected`: the expected accuracy is fitted, and at least half of the pixels are expected to be right. `doubtful`: less
than half are. `unlike`: less than half are, and the frame is unlike the training data too. `no statistics`: the network
has no statistics to compare the frame with. `not calibrated`: no temperature was fitted. `no answer`: the logits are
not finite, so no label is drawn.
"""
CLAIMS: tuple[Verdict, ...] = ("expected", "doubtful", "unlike")
"""Verdicts whose expected accuracy was fitted on data with known labels."""
RARE_LEVEL = 128
"""Level of 255 of an energy that one pixel in a hundred of the training domain has."""


@dataclass(frozen=True, eq=False)
class Frame:
    """One picture of a stream.

    `label` travels with the picture where the source knows the truth (the simulated street, a labelled data set). So
    live accuracy needs no second, separately synchronised stream.
    """

    image: np.ndarray
    """(H, W, 3) uint8, RGB."""
    index: int
    """Source frame number from 0. A gap of more than one means dropped frames; temporal weights decay by it."""
    time_s: float
    """Presentation time in seconds from the start of the source."""
    label: np.ndarray | None = None
    """(H, W) uint8 class ids (void included), int32 sets of classes (`core.evaluation.coarse`), or None."""
    discontinuity: bool = False
    """The stream starts anew here (first frame, reconnection, seek); earlier frames are unrelated to this one."""

    def __post_init__(self) -> None:
        image, label = self.image, self.label
        if image.ndim != 3 or image.shape[2] != 3 or image.dtype != np.uint8 or not image.size:
            raise ValueError(f"a frame must be (H, W, 3) uint8 RGB, got {image.shape} {image.dtype}")
        if label is not None and (label.shape != image.shape[:2] or label.dtype not in (np.uint8, np.int32)):
            raise ValueError(f"a label must be {image.shape[:2]} uint8 or int32, got {label.shape} {label.dtype}")


class FrameScores(NamedTuple):
    """Score and energy of each picture of a batch (core/familiarity), as tensors. A backend gives the values of its
    one picture as a float and an array (h', w')."""

    score: Any
    """(B,) familiarity score, in standard deviations of the network's training domain."""
    energy: Any
    """(B, h', w'). 0 is the training domain's median, 1 its 99th percentile."""

    def blend(self, other: "FrameScores", weight: Any) -> "FrameScores":
        """(1 - weight) * self + weight * other, as of several passes over one picture."""
        return FrameScores(*(mine + (its - mine) * weight for mine, its in zip(self, other, strict=True)))


@dataclass(frozen=True, eq=False)
class Maps:
    """The maps of one frame. The four uint8 maps have the frame's size; `probs` has the network's."""

    label: np.ndarray
    """(H, W) uint8 class ids."""
    confidence: np.ndarray
    """(H, W) uint8: largest mean probability, 255 = 1."""
    entropy: np.ndarray
    """(H, W) uint8: H[mean p], 255 = ln K (total uncertainty)."""
    disagreement: np.ndarray
    """(H, W) uint8: H[mean p] - mean H[p], 255 = ln K. Over time it also contains motion."""
    probs: np.ndarray | None = None
    """(K, h, w) float32, the smoothed mean, on request."""
    familiarity: float | None = None
    """Share of the frames of the network's training domain that are at least as novel, averaged over time; at most 0.05
    is novel. None where the checkpoint has no familiarity statistics for this method."""
    expected_accuracy: float = 0.0
    """Share of the pixels that are expected to be right (core/expected.py); without statistics the mean
    confidence, which `verdict` then marks as unverified."""
    verdict: Verdict = "not calibrated"
    """What is known about this frame's labels; set by `Segmenter`."""
    energy: np.ndarray | None = None
    """(H, W) uint8: free energy of the logits, higher where no class has much. Level 0 is the training domain's median
    or less; 128 is its 99th percentile."""
    cut: bool = False
    """True for the first frame after a scene cut."""
    network: bool = True
    """False where the network did not run on this frame: its maps were carried along the motion (runtime/every.py)."""

    @property
    def finite(self) -> bool:
        """False where the network's answer was NaN or infinite (`UNKNOWN`)."""
        return bool(self.confidence[0, 0] > 0)


def energy_map(energy: np.ndarray, size: tuple[int, ...]) -> np.ndarray:
    """Energy (h', w') of `FrameScores` -> (H, W) uint8 of `Maps.energy`."""
    import cv2

    shades = np.clip(np.nan_to_num(energy * RARE_LEVEL, nan=255.0), 0, 255).astype(np.uint8)
    return np.asarray(cv2.resize(shades, size[::-1], interpolation=cv2.INTER_LINEAR))
