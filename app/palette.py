"""Display of classes: names that a font can draw, colours, and their overlay."""

import unicodedata
from dataclasses import replace
from functools import lru_cache

import numpy as np

from steadyseg.app.opencv import opencv
from steadyseg.core.classes import CAMVID, ClassList
from steadyseg.core.errors import InputError

SHOWN = {"Tree": (51, 153, 51), "SignSymbol": (255, 153, 153), "Fence": (255, 153, 255), "Car": (204, 0, 102)}
"""Colours in place of CamVid's own, which a half-transparent overlay shows like another class's: Road is 24 from Fence
in CIELAB, and 38 from Car. These are 40 apart from all others, and as far from their tints over white."""
STRENGTH = ((0.4, 0.4), (0.9, 1.0))
"""(confidence, share of the chosen opacity), twice. A pixel of confidence 0.4 or less has 40 % of the opacity, a pixel
of 0.9 or more all of it."""


def display_classes(classes: ClassList) -> ClassList:
    """Returns CamVid's classes in colours that differ; other classes keep their own."""
    if (classes.names, classes.colors) != (CAMVID.names, CAMVID.colors):
        return classes
    return replace(classes, colors=tuple(map(SHOWN.get, classes.names, classes.colors)))


@lru_cache(maxsize=16)
def drawable(names: tuple[str, ...]) -> tuple[str, ...]:
    """The names in ASCII, since the font draws other letters as boxes. A name with other letters is drawn behind its
    id: it loses its accents, and letters become their codes."""

    def plain(name: str) -> str:
        letters = [letter for letter in unicodedata.normalize("NFKD", name) if not unicodedata.combining(letter)]
        return "".join(letters).encode("ascii", "backslashreplace").decode()

    return tuple(name if name.isascii() else f"{number}: {plain(name)}" for number, name in enumerate(names))


def draw_overlay(
    image: np.ndarray,
    label: np.ndarray,
    palette: np.ndarray,
    opacity: float = 0.5,
    confidence: np.ndarray | None = None,
) -> np.ndarray:
    """Class colours over the picture: opacity 0 shows only the picture, opacity 1 only the colours.

    The image is (H, W, 3) uint8 RGB, the label (H, W) uint8. The palette is (N, 3) uint8 RGB, at most 256 colours.
    Labels from N on are black. `confidence` (H, W) uint8, 255 = 1: the colours fade where it is low (`STRENGTH`).
    InputError for another palette. 1.4 ms for 960x540, and 2.5 ms with a confidence; `palette[label]` instead of
    OpenCV's table look-up would take 5 ms.
    """
    cv2, colours = opencv(), colour_labels(label, palette)
    if confidence is None:
        return cv2.addWeighted(image, 1 - opacity, colours, opacity, 0)
    share = cv2.cvtColor(cv2.LUT(confidence, strengths(opacity)), cv2.COLOR_GRAY2RGB)
    return cv2.add(cv2.multiply(colours, share, scale=1 / 255), cv2.multiply(image, 255 - share, scale=1 / 255))


@lru_cache(maxsize=32)
def strengths(opacity: float) -> np.ndarray:
    """(256,) uint8: the opacity, 255 = 1, of a pixel of each level of confidence, by `STRENGTH`."""
    (low, least), (high, most) = STRENGTH
    return np.round(255 * opacity * np.interp(np.arange(256) / 255, (low, high), (least, most))).astype(np.uint8)


def draw_contours(picture: np.ndarray, label: np.ndarray, palette: np.ndarray) -> None:
    """Draws into the picture, on both sides of each border between classes, a line in the full colour of that side."""
    cv2 = opencv()
    side = 3 + 2 * (label.shape[0] // 720)
    edges = cv2.morphologyEx(label, cv2.MORPH_GRADIENT, np.ones((side, side), np.uint8))
    cv2.copyTo(colour_labels(label, palette), edges, picture)


def colour_labels(label: np.ndarray, palette: np.ndarray) -> np.ndarray:
    """Gives each class id its colour: (H, W) uint8 ids, (N, 3) uint8 palette -> (H, W, 3) uint8 RGB. 0.4 ms a frame."""
    if palette.dtype != np.uint8 or palette.ndim != 2 or palette.shape[1] != 3 or len(palette) > 256:
        raise InputError(f"a palette is (N, 3) uint8 RGB, at most 256 colours, got {palette.shape} {palette.dtype}")
    table = palette if len(palette) == 256 else np.pad(palette, ((0, 256 - len(palette)), (0, 0)))
    return opencv().applyColorMap(label, table[:, None, :])


def draw_classes(
    image: np.ndarray,
    label: np.ndarray,
    palette: np.ndarray,
    opacity: float = 0.5,
    confidence: np.ndarray | None = None,
) -> np.ndarray:
    """The overlay with its outlines, as videos, contact sheets and the page show it; opacity 0 has no outlines."""
    overlay = draw_overlay(image, label, palette, opacity, confidence)
    if opacity:
        draw_contours(overlay, label, palette)
    return overlay
