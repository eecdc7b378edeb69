"""Pictures of maps, by pure functions that are fast enough for every frame (960x540 on one CPU core)."""

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import numpy as np

from steadyseg.app.opencv import opencv
from steadyseg.app.palette import colour_labels
from steadyseg.app.video.verdict import describe_frame
from steadyseg.core.errors import InputError
from steadyseg.core.expected import DOUBTFUL
from steadyseg.core.frame import Maps
from steadyseg.core.method import Method

GREEN, AMBER, RED = (24, 96, 52), (150, 90, 0), (150, 30, 30)
"""Colours of the line above a picture: from green at an expected accuracy of `GOOD` to amber at 50 %, then red."""
GOOD = 0.85


def draw_banner(picture: np.ndarray, maps: Maps, data: str = "") -> np.ndarray:
    """Draws a line of text at the top of a picture: how many labels are expected to be right.

    A picture of under 64 pixels a side has no room for it. `data`: name of the network's training data.
    """
    if min(picture.shape[:2]) < 64:
        return picture
    cv2, height, words = opencv(), max(16, picture.shape[0] // 20), describe_frame(maps, data)
    banner = np.array(picture)
    banner[:height] = banner_color(maps)
    cv2.putText(banner, words, (6, height - 5), cv2.FONT_HERSHEY_SIMPLEX, height / 32, (255, 255, 255), 1, cv2.LINE_AA)
    return banner


def banner_color(maps: Maps) -> tuple[int, ...]:
    """Returns the colour of a frame's line; amber where nothing is known."""
    if maps.verdict in ("doubtful", "unlike", "no answer"):
        return RED
    if maps.verdict != "expected":
        return AMBER
    good = min(1.0, (maps.expected_accuracy - DOUBTFUL) / (GOOD - DOUBTFUL))
    return tuple(round(good * best + (1 - good) * worst) for best, worst in zip(GREEN, AMBER, strict=True))


def grey(image: np.ndarray) -> np.ndarray:
    """The picture darker and without colours, as it is shown below the confidence that a visitor asks for."""
    cv2 = opencv()
    return cv2.convertScaleAbs(cv2.cvtColor(cv2.cvtColor(image, cv2.COLOR_RGB2GRAY), cv2.COLOR_GRAY2RGB), alpha=0.6)


def draw_energy(maps: Maps) -> np.ndarray:
    """(H, W, 3) uint8 RGB. Black is at most the median energy of the training domain; pale yellow is at least its 99th
    percentile.

    Raises InputError if the checkpoint has no statistics of its training domain.
    """
    if maps.energy is None:
        raise InputError("energy needs a checkpoint with familiarity: steadyseg calibrate --familiarity")
    return draw_uncertainty(np.minimum(maps.energy, 127) * 2)


def draw_uncertainty(entropy: np.ndarray) -> np.ndarray:
    """Colours (H, W) uint8 uncertainty: (H, W, 3) uint8 RGB from black (sure) to pale yellow (as unsure as possible).
    0.4 ms a frame.

    The colours are matplotlib's inferno. Like viridis and cividis, they are perceptually even and safe for colour-blind
    readers. Of the three, their range of lightness is the widest (0 to 98 of 100, against 14 to 91), so a grey print
    reads the same and sure regions stay dark.
    """
    return colour_labels(entropy, _inferno())


@lru_cache(maxsize=1)
def _inferno() -> np.ndarray:
    """(256, 3) uint8 RGB."""
    cv2 = opencv()
    steps = np.arange(256, dtype=np.uint8)[:, None]  # (256, 1)
    return np.ascontiguousarray(cv2.applyColorMap(steps, cv2.COLORMAP_INFERNO)[:, 0, ::-1])


LARGEST_SET = 6
"""Prediction sets of this size or larger are drawn in the brightest colour."""


def conformal_threshold(fit: Mapping[str, Any], method: Method) -> float:
    """Returns the LAC threshold in the record of the method's fit; InputError names the command that fits it."""
    conformal = fit.get("conformal")
    threshold = conformal.get("lac") if isinstance(conformal, dict) else None
    if not isinstance(threshold, float):
        raise InputError(f"set sizes need a calibration: `steadyseg calibrate` fits one for {method}")
    return threshold


def draw_set_sizes(maps: Maps, threshold: float) -> np.ndarray:
    """(H, W) uint8: 0 if one class is possible, 255 if `LARGEST_SET` or more classes are possible."""
    if maps.probs is None:
        raise ValueError("set sizes need probabilities: open the segmenter with keep_probs=True")
    # (h, w), as `core.evaluation.conformal.prediction_sets` by LAC: the most probable class is always in
    sizes = np.maximum((maps.probs >= 1.0 - threshold).sum(0), 1)
    shades = np.clip((sizes - 1) * (255 / (LARGEST_SET - 1)), 0, 255).astype(np.uint8)
    height, width = maps.label.shape
    return np.asarray(opencv().resize(shades, (width, height), interpolation=opencv().INTER_NEAREST))
