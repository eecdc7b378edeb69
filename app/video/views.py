"""The views of a frame: the overlay of class colours, five maps of uncertainty with their scales, and two pictures side
by side.
"""

from typing import Literal, get_args

import numpy as np

from steadyseg.app.opencv import opencv
from steadyseg.app.palette import draw_classes
from steadyseg.app.video.legend import Legend, Scale
from steadyseg.app.video.render import LARGEST_SET, draw_banner, draw_energy, draw_set_sizes, draw_uncertainty
from steadyseg.core.classes import ClassList
from steadyseg.core.frame import Frame, Maps

MapName = Literal["uncertainty", "confidence", "disagreement", "set-size", "energy"]
MAP_NAMES: tuple[MapName, ...] = get_args(MapName)
DISAGREEMENT_GAIN = 4
"""Disagreement is a fraction of uncertainty; without this factor, its picture is black."""
SIZES = (*map(str, range(1, LARGEST_SET)), f"{LARGEST_SET} or more")
SCALES: dict[MapName, Scale] = {
    "uncertainty": Scale("uncertainty (entropy)", "0: sure", "1: all classes equal"),
    "confidence": Scale("1 - confidence", "0", "1"),
    "disagreement": Scale("disagreement of samples", "0", f"{1 / DISAGREEMENT_GAIN:g} of the most possible"),
    "set-size": Scale("classes in the prediction set", "1", SIZES[-1], SIZES),
    "energy": Scale("energy of the logits", "usual in training", "rarest 1 % of pixels"),
}


def draw_map(maps: Maps, name: MapName, threshold: float | None = None) -> np.ndarray:
    """(H, W, 3) uint8 RGB from black, which is sure or usual, to pale yellow.

    `threshold`: threshold of prediction sets (`conformal_threshold`). InputError for energies that the network lacks.
    """
    if name in ("uncertainty", "confidence"):
        return draw_uncertainty(maps.entropy if name == "uncertainty" else 255 - maps.confidence)
    if name == "disagreement":
        return draw_uncertainty(opencv().convertScaleAbs(maps.disagreement, alpha=DISAGREEMENT_GAIN))
    if name == "energy":
        return draw_energy(maps)
    assert threshold is not None, "whoever shows set sizes has asked for their threshold"
    return draw_uncertainty(draw_set_sizes(maps, threshold))


def draw_segmentation(image: np.ndarray, maps: Maps, palette: np.ndarray, opacity: float = 0.5) -> np.ndarray:
    """The overlay of a frame with its outlines. Its colours fade where the confidence is low; a frame without an answer
    has none."""
    return draw_classes(image, maps.label, palette, opacity, maps.confidence) if maps.finite else np.array(image)


class Painter:
    """Draws the picture of each frame of a stream in one view, with its legend below."""

    def __init__(
        self,
        view: str,
        classes: ClassList,
        scale: Scale | None = None,
        threshold: float | None = None,
        legend: bool = True,
        data: str = "",
    ) -> None:
        """`view`: overlay, side-by-side or the name of a map. `scale`: scale of the map, by default its usual scale.
        `threshold`: threshold of prediction sets. `data`: name of the network's training data."""
        self._view, self._palette, self._threshold, self._data = view, classes.palette(), threshold, data
        self._map: MapName = next((name for name in MAP_NAMES if name == view), "uncertainty")
        scale = scale or SCALES[self._map]
        panels = {"overlay": (None,), "side-by-side": (None, scale)}.get(view, (scale,))
        self._legend = Legend(classes, panels) if legend else None

    def size(self, width: int, height: int) -> tuple[int, int]:
        """(width, height) of the picture of a frame of this size."""
        width = 2 * width if self._view == "side-by-side" else width
        return self._legend.size(width, height) if self._legend else (width, height)

    def __call__(self, frame: Frame, maps: Maps) -> np.ndarray:
        """(H, W, 3) uint8 RGB."""
        picture = self._picture(frame, maps)
        return self._legend.add(picture, maps) if self._legend else picture

    def _picture(self, frame: Frame, maps: Maps) -> np.ndarray:
        if self._view not in ("overlay", "side-by-side"):
            return draw_banner(draw_map(maps, self._map, self._threshold), maps, self._data)
        overlay = draw_banner(draw_segmentation(frame.image, maps, self._palette), maps, self._data)
        return overlay if self._view == "overlay" else np.hstack((overlay, draw_map(maps, self._map)))
